#!/usr/bin/env bash
# A Slurm of one node on this machine, for the tests: `slurm.sh start FOLDER`, `slurm.sh stop FOLDER`. Needs root.
# Of Debian's slurm-wlm and munge only the programs are used: configuration, keys, ports and processes are its own, in
# FOLDER, so a Slurm that is there already is not touched. `start` prints the file that SLURM_CONF has to name.
set -euo pipefail

PATH="$PATH:/usr/sbin"
action="${1:?start or stop}" folder="$(realpath -m "${2:?a folder}")"

stop() {
  local name pid
  export SLURM_CONF="$folder/slurm.conf"
  if [ -f "$folder/slurmctld.pid" ]; then
    scancel --quiet --user=root || true
    for _ in $(seq 150); do
      [ -n "$(squeue --noheader 2>/dev/null)" ] || break
      sleep 0.1
    done
  fi
  for name in slurmd slurmctld munged; do
    [ -f "$folder/$name.pid" ] || continue
    end "$(cat "$folder/$name.pid")"
  done
  for pid in $(pgrep slurmstepd); do # of a job that did not want to end
    if grep -qzF "SLURM_CONF=$SLURM_CONF" "/proc/$pid/environ" 2>/dev/null; then end "$pid"; fi
  done
}

end() {
  kill "$1" 2>/dev/null || return 0
  for _ in $(seq 50); do
    kill -0 "$1" 2>/dev/null || return 0
    [ "$(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null)" != Z ] || return 0
    sleep 0.1
  done
  kill -9 "$1" 2>/dev/null || true
}

start() {
  mkdir -p "$folder"/{state,spool,log,munge}
  chmod 700 "$folder/munge"
  chmod 755 "$folder"
  local host port memory
  host="$(hostname -s)"
  port="$(python3 -c 'import socket; s = [socket.socket() for _ in range(2)]; [x.bind(("127.0.0.1", 0)) for x in s]; print(*[x.getsockname()[1] for x in s])')"
  memory="$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 - 100))"
  dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
  chmod 600 "$folder/munge/key"
  munged --socket="$folder/munge/socket" --key-file="$folder/munge/key" --pid-file="$folder/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed" --force
  cat > "$folder/slurm.conf" <<CONF
ClusterName=mario
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${port% *}
SlurmdPort=${port#* }
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SwitchType=switch/none
KillWait=5
MinJobAge=300
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=$memory State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld -c
  slurmd -c
  for _ in $(seq 100); do
    [ "$(sinfo --noheader --format=%t 2>/dev/null)" = idle ] && { echo "$SLURM_CONF"; return; }
    sleep 0.2
  done
  echo "slurm.sh: the node did not come up; logs in $folder/log" >&2
  tail -n 5 "$folder"/log/*.log >&2
  stop
  exit 1
}

case "$action" in
  start) start ;;
  stop) stop ;;
  *) echo "slurm.sh: start or stop, not $action" >&2; exit 2 ;;
esac
