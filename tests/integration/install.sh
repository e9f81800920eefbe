#!/usr/bin/env bash
# What the integration tests need of the system, from Debian's packages where it is missing: Chromium, PostgreSQL, Slurm,
# strace and a C++ compiler. Nothing is started: each test starts its own. Without root nothing is installed either; it says
# what is missing, and the tests that need it are skipped, saying so.
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin"

has() { command -v "$1" >/dev/null 2>&1; }
missing=()
has chromium || missing+=(chromium)
has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
{ has slurmctld && has slurmd && has sbatch; } || missing+=(slurm-wlm)
has munged || missing+=(munge)
has strace || missing+=(strace)
has g++ || has clang++ || has c++ || missing+=(g++)

if [ ${#missing[@]} -eq 0 ]; then
  echo "chromium, postgresql, slurm-wlm, munge, strace, a C++ compiler: all there"
  exit
fi
if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
  echo "missing: ${missing[*]}; to have their tests run: sudo apt-get install --no-install-recommends ${missing[*]}"
  exit
fi

echo "installing ${missing[*]} with apt-get"
policy=/usr/sbin/policy-rc.d log="$(mktemp)"
trap 'rm -f "$log" "${made:-}"' EXIT
if [ ! -e "$policy" ]; then # else the packages would start servers of the system
  made="$policy"
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
SECONDS=0
if { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  echo "installed in $SECONDS s"
else
  tail -n 3 "$log"
  echo "could not install ${missing[*]}: the tests that need them are skipped"
fi
