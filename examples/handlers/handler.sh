#!/usr/bin/env bash
# Prepares this VM for its scheduled events, approves them, and recovers from them.
# Needs bash 4.4 and curl, and no root. What it has done is in $STATE_DIRECTORY, which systemd sets.
set -u
export LC_ALL=C

# --- your part -----------------------------------------------------------------------------------
# Either may run again after a crash, so running it twice must do no harm.

# If it fails it is tried again, and the event is not approved.
prepare() { # TYPE EVENT_ID: drain, checkpoint, fail over.
  echo "preparing for $1 $2"
}

recover() { # TYPE EVENT_ID: accept work again. Also runs after an event that was canceled.
  echo "recovering from $1 $2"
}

# --- the service ---------------------------------------------------------------------------------

readonly service='http://169.254.169.254/metadata'
readonly events="$service/scheduledevents?api-version=2020-07-01"
readonly own_name="$service/instance/compute/name?api-version=2021-02-01&format=text"
readonly state="${STATE_DIRECTORY:-$PWD}/scheduled-events"
readonly scratch="$state/.scratch"
mkdir -p "$scratch" || exit

# ask SECONDS CURL_ARGUMENT...: sets body and retry_after; fails unless a complete 200 arrives.
# The service is this machine's own, so a proxy could only get in the way.
ask() {
  local seconds=$1 status
  shift
  body= retry_after=
  # In the background, because bash handles no signal while it waits for a command.
  curl --silent \
    --noproxy '*' \
    --header 'Metadata: true' \
    --connect-timeout 5 --max-time "$seconds" --max-filesize 1000000 \
    --dump-header "$scratch/head" --output "$scratch/body" --write-out '%{http_code}' \
    "$@" > "$scratch/status" &
  wait $!
  local outcome=$?
  status=$(< "$scratch/status")
  if ((outcome)); then
    echo "no answer: curl ended with $outcome" >&2
    return "$outcome"
  fi
  if [[ $status != 200 ]]; then
    retry_after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]\{1,4\}\).*/\1/p' "$scratch/head")
    echo "the service answered $status" >&2
    return 1
  fi
  [[ ! -s $scratch/body ]] || body=$(< "$scratch/body")
}

# --- documents -----------------------------------------------------------------------------------

# read_document: sets ids, and by id: types, statuses, resources (one per line). Fails if the body
# is not a complete document: events missing from half a document may still be to come.
# Fields, types and nesting that it does not know are skipped.
read_document() {
  local token value depth=0 is_key= is_over= incarnation= has_events= id= type= status= names=
  local -a kind=() name=()
  ids=() types=() statuses=() resources=()
  while IFS= read -r token; do
    [[ -z $is_over ]] || return 1
    case $token in
      '{' | '[')
        kind[++depth]=$token name[depth]=
        [[ $token == '{' ]] && is_key=1 || is_key=
        ((depth == 2)) && [[ ${name[1]} == Events && $token == '[' ]] && has_events=1
        ((depth == 3)) && id= type= status= names=
        ;;
      '}' | ']')
        [[ ${kind[depth]-}$token == '{}' || ${kind[depth]-}$token == '[]' ]] || return 1
        if ((depth == 3)) && [[ ${name[1]} == Events ]]; then
          # The id becomes the name of a file.
          [[ $id =~ ^[A-Za-z0-9-]+$ ]] || return 1
          id=${id^^}
          ids+=("$id") types[$id]=$type statuses[$id]=$status resources[$id]=$names
        fi
        ((--depth)) || is_over=1
        is_key=
        ;;
      ',') [[ ${kind[depth]-} == '{' ]] && is_key=1 ;;
      ':') is_key= ;;
      *)
        ((depth)) || return 1
        value=${token#\"} value=${value%\"}
        if [[ $is_key ]]; then
          name[depth]=$value
        elif ((depth == 1)) && [[ ${name[1]} == DocumentIncarnation ]]; then
          incarnation=$value
        elif ((depth == 3)) && [[ ${name[1]} == Events ]]; then
          case ${name[3]} in
            EventId) id=$value ;;
            EventType) type=$value ;;
            EventStatus) status=$value ;;
          esac
        elif ((depth == 4)) && [[ ${name[1]} == Events && ${name[3]} == Resources ]]; then
          names+="$value"$'\n'
        fi
        ;;
    esac
  done < <(grep -oE '"([^"\\]|\\.)*"|[][{},:]|[^][{},:"[:space:]]+' <<< "$body")
  [[ $is_over && $has_events && $incarnation =~ ^[0-9]+$ ]]
}

# Names are the same in any letter case.
is_mine() { [[ $'\n'"${resources[$1],,}" == *$'\n'"${me,,}"$'\n'* ]]; }

# An approval counts for all VMs that an event names, so only the first of them sends it.
leads() { [[ "${resources[$1],,}" == "${me,,}"$'\n'* ]]; }

# --- the journal: one file for each event, with what has been done and the event's type ----------

phase_of() { [[ -e $state/$1 ]] && cut -d ' ' -f 1 "$state/$1"; }

journal() { # PHASE TYPE ID
  printf '%s %s\n' "$1" "$2" > "$state/.$3" && sync "$state/.$3" && mv "$state/.$3" "$state/$3"
  echo "$1: $2 $3"
}

# --- what to do ----------------------------------------------------------------------------------

# In the background: the next event may leave less time than this one takes to prepare for.
start_preparing() { # TYPE ID
  [[ ${preparing[$2]-} ]] && kill -0 "${preparing[$2]}" 2> /dev/null && return
  { prepare "$1" "$2" && journal prepared "$1" "$2"; } &
  preparing[$2]=$!
}

attend() { # ID
  local id=$1 type=${types[$1]}
  case $(phase_of "$id") in
    '') journal preparing "$type" "$id" && start_preparing "$type" "$id" ;;
    preparing) start_preparing "$type" "$id" ;; # it failed, or this program was killed meanwhile
    prepared)
      # An event that has started needs no approval; it may never have been Scheduled.
      [[ ${statuses[$id]} == Scheduled ]] && leads "$id" || return 0
      # Recorded first: after a crash it is not sent twice. At worst the event waits for NotBefore.
      journal approving "$type" "$id"
      if ! ask 15 --header 'Content-Type: application/json' \
        --data "{\"StartRequests\":[{\"EventId\":\"$id\"}]}" "$events"; then
        journal prepared "$type" "$id"
        return 1
      fi
      journal approved "$type" "$id"
      ;;
  esac
}

# An event that the document no longer has is over. Only a complete document can tell.
recover_from_ended() {
  local file id
  for file in "$state"/*; do
    id=${file##*/}
    [[ -e $file && -z ${statuses[$id]+known} ]] || continue
    [[ ${preparing[$id]-} ]] && kill "${preparing[$id]}" 2> /dev/null
    recover "$(cut -d ' ' -f 2- "$file")" "$id" && rm "$file" && echo "over: $id"
    unset "preparing[$id]"
  done
}

look() {
  local id failed=0
  # The first read switches scheduled events on, which takes up to two minutes.
  ask "$patience" "$events"
  case $? in
    0) patience=15 ;;
    28) patience=130 && return 1 ;;
    *) return 1 ;;
  esac
  read_document || { echo "that is not a document: ${body:0:100}" >&2; return 1; }
  if [[ -z $me ]]; then
    ask 15 "$own_name" && [[ $body ]] || return 1
    me=$body
  fi
  for id in "${ids[@]}"; do
    ! is_mine "$id" || attend "$id" || failed=1
  done
  recover_from_ended
  return "$failed"
}

declare -A types statuses resources preparing=()
me= patience=130 failures=0
trap 'kill $(jobs -p) 2> /dev/null; exit 0' TERM INT
while :; do
  pause=1
  if look; then
    failures=0
  else
    # Twice as long each time, but a Spot VM has 30 seconds from notice to eviction.
    pause=$((failures < 3 ? 1 << failures : 8)) failures=$((failures + 1))
    ((${retry_after:-0} > pause)) && pause=$((retry_after < 10 ? retry_after : 10))
  fi
  sleep "$pause" &
  wait $!
done
