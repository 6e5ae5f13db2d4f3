#!/bin/busybox sh
# All that a guest of the lab runs: it polls its scheduled events, and says on its serial port what
# it sees. Lines that start with FW are for the lab. Without KVM each process that it starts costs
# as much as a hundred on a real machine, so polls start few.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
exec </dev/null >/dev/ttyS0 2>&1

say() { echo "FW $*"; }
option() { tr ' ' '\n' </proc/cmdline | sed -n "s/^fw\.$1=//p"; }

for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci \
	failover net_failover virtio_net button evdev; do
	insmod "/lib/$module.ko" 2>/dev/null
done
read -r boot </proc/sys/kernel/random/boot_id
say "booted $boot"

tries=0
while [ ! -e /sys/class/net/eth0 ] && [ "$tries" -lt 100 ]; do
	usleep 50000
	tries=$((tries + 1))
done
ip link set lo up
ip link set eth0 up
ip addr add "$(option address)" dev eth0
ip route add 169.254.169.254/32 dev eth0

# The power button. A guest that ignores it is one of the lab's cases.
if [ "$(option button)" != ignored ]; then
	for device in /dev/input/event*; do
		(dd if="$device" of=/dev/null bs=24 count=1 2>/dev/null && say button && poweroff -f) &
	done
fi

# METHOD [BODY]: sets `status`, the first line of the response, and `document`, the body of a 200.
# By nc, since the wget of a static busybox ends with a fault.
end=$(printf '\r')
ask() {
	printf '%s /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
		"$1" "${#2}" "$2" | nc -w 3 169.254.169.254 80 >/response 2>/dev/null
	status=unreachable
	document=unreachable
	{
		read -r status || status=unreachable
		while read -r line && [ "$line" != "$end" ]; do :; done
		case "$status" in
		*' 200 '*) read -r document ;;
		esac
	} </response
	status=${status%"$end"}
}

approve=$(option approve)
number=0
last=none
answer=none
while true; do
	ask GET
	number=$((number + 1))
	case "$document" in
	"{"*) say "poll $number" ;;
	esac
	if [ "$document" != "$last" ]; then
		say "document $document"
		last=$document
	fi
	case "$approve$document" in
	yes*'"EventStatus":"Scheduled"'*)
		event=${document##*'"EventId":"'}
		event=${event%%'"'*}
		# Said first: it may be reset before it hears that this was accepted.
		say "approves $event"
		ask POST "{\"StartRequests\":[{\"EventId\":\"$event\"}]}"
		;;
	yes* | no*) ;;
	*)
		# The id of an event, which may be that of another VM.
		ask POST "{\"StartRequests\":[{\"EventId\":\"$approve\"}]}"
		if [ "$status" != "$answer" ]; then
			say "answer $status"
			answer=$status
		fi
		;;
	esac
	usleep 300000
done
