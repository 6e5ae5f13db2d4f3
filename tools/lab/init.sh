#!/bin/busybox sh
# All that a guest of the lab runs: it polls its scheduled events, and says on its serial port what
# it sees. Lines that start with FW are for the lab.
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
say "booted $(cat /proc/sys/kernel/random/boot_id)"

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

# METHOD [BODY]: the body of the response if it is a 200, or its first line. By nc, since the wget
# of a static busybox ends with a fault.
request() {
	printf '%s /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n' "$1"
	printf 'Host: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\n'
	printf 'Content-Length: %d\r\n\r\n%s' "${#2}" "$2"
}
ask() {
	request "$@" | nc -w 3 169.254.169.254 80 2>/dev/null | tr -d '\r' |
		sed -n '1{/ 200 /!{p;q}};/^$/,$p' | tr -d '\n'
}

number=0
last=none
while true; do
	document=$(ask GET)
	number=$((number + 1))
	case "$document" in
	"{"*) say "poll $number" ;;
	*) document=unreachable ;;
	esac
	if [ "$document" != "$last" ]; then
		say "document $document"
		last=$document
	fi
	case "$(option approve)$document" in
	yes*'"EventStatus":"Scheduled"'*)
		event=$(echo "$document" | sed -n 's/.*"EventId":"\([^"]*\)".*/\1/p')
		# Said first: it may be reset before it hears that this was accepted.
		say "approves $event"
		ask POST "{\"StartRequests\":[{\"EventId\":\"$event\"}]}" >/dev/null
		;;
	esac
	usleep 300000
done
