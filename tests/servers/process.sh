# One server process in a folder, on a port of the loopback interface. Sourced by the scripts that start servers.
#
# Such a script says `usage` in its first comment, sets `server` (its name), and defines
#   take_option   where it has options of its own: takes one from "$@" and sets `taken` to its number of words
#   prepare       makes configuration and data before the first start; $dir and $port are set
#   launch        starts the process in the background, by `run`
#   is_ready      whether it answers a real request
#   describe      prints what a client has to know, on one line
#   forget        removes its data
# then calls `serve "$@"`. A server keeps port and data until `stop`: after `kill`, `start` brings it back as it was.
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
home=${FIRN_TEST_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/firn-tests}
start_seconds=90 stop_seconds=15

take_option() { :; }
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
say() { printf '%s: %s\n' "$server" "$*" >&2; }
fail() { say "$*"; exit 1; }

# The start of a process in clock ticks: with it a recycled process id is not taken for the server.
started_at() { awk '{ print $22 }' "/proc/$1/stat" 2>/dev/null; }

pid_of_server() {
  local pid started
  read -r pid started 2>/dev/null <"$dir/pid" || return 1
  [ "$(started_at "$pid")" = "$started" ] && [ -n "$started" ] && echo "$pid"
}

# Runs a command in the background as the server; what it says goes to $dir/log. It must become the server itself.
run() {
  nohup "$@" >>"$dir/log" 2>&1 </dev/null 9>&- &
  echo "$! $(started_at $!)" >"$dir/pid"
}

# Below the range from which systems hand out ports by themselves, so that nothing takes it between here and the start.
free_port() {
  local candidate
  while :; do
    candidate=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null || break
  done
  echo "$candidate"
}

secret() { head -c 18 /dev/urandom | base64 | tr '+/' 'xy'; }

wait_until_ready() {
  local deadline=$((SECONDS + start_seconds))
  until is_ready; do
    pid_of_server >/dev/null || fail "it ended: $(tail -n 5 "$dir/log")"
    [ $SECONDS -lt $deadline ] || fail "no answer after $start_seconds s: see $dir/log"
    sleep 0.1
  done
}

start() {
  "$here/setup" "$server"
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  exec 9>"$dir/.lock"
  flock 9
  if [ -f "$dir/port" ]; then port=$(cat "$dir/port"); else
    port=$(free_port)
    prepare
    echo "$port" >"$dir/port"
  fi
  if ! pid_of_server >/dev/null; then
    launch
    wait_until_ready
  fi
  if [ -n "$while_pid" ]; then
    nohup bash -c 'while kill -0 "$0" 2>/dev/null; do sleep 1; done; exec "$1" stop --dir "$2"' \
      "$while_pid" "$here/$server" "$dir" >/dev/null 2>&1 </dev/null 9>&- &
  fi
  describe
}

# Asks the process to end by signal $1, and no longer than it may take.
end() {
  local pid deadline=$((SECONDS + stop_seconds))
  pid=$(pid_of_server) && kill -"$1" "$pid"
  while pid=$(pid_of_server); do
    if [ $SECONDS -ge $deadline ]; then kill -9 "$pid"; fi
    sleep 0.1
  done
  rm -f "$dir/pid"
}

stop() {
  [ -f "$dir/port" ] || return 0
  port=$(cat "$dir/port")
  end "${stop_signal:-TERM}"
  forget
  rm -f "$dir/port"
}

status() {
  local pid
  [ -f "$dir/port" ] || { echo "no server in $dir"; return 1; }
  port=$(cat "$dir/port")
  if pid=$(pid_of_server); then echo "running, process $pid: $(describe)"; else echo "stopped: $(describe)"; fi
}

serve() {
  local command=${1:-}
  [ -n "$command" ] && shift || usage
  dir=$home/$server while_pid=''
  while [ $# -gt 0 ]; do
    case $1 in
      --dir) dir=${2:?}; shift 2 ;;
      --while) while_pid=${2:?}; shift 2 ;;
      *)
        taken=0
        take_option "$@"
        [ "$taken" -gt 0 ] || usage
        shift "$taken"
        ;;
    esac
  done
  case $command in
    start) start ;;
    stop) stop ;;
    status) status ;;
    kill) pid_of_server >/dev/null || fail "nothing runs in $dir"; end "${kill_signal:-KILL}" ;;
    *) usage ;;
  esac
}
