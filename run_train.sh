#!/usr/bin/env bash
# torchtitan's run_train.sh, for trainyard: the same variables become flags, and arguments go on to training.
#
#   CONFIG_FILE=debug_model.toml NGPU=2 ./run_train.sh --training.steps 10
#
# CONFIG_FILE  the TOML; the default is torchtitan's
# NGPU         ranks on this machine; 8
# COMM_MODE    fake_backend: nothing is started; the plan for NGPU ranks in its place (docs/plan.md)
# LOG_RANK     taken: every rank's output comes in lines of its own
# TRAIN_FILE   torchtitan.train, which is `trainyard train`; another module is refused by its name
# TRAINYARD    the program; default: that of this checkout's build, else the one in PATH
set -eu

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
program=${TRAINYARD:-$here/build/release/bin/trainyard}
if [ -z "${TRAINYARD:-}" ] && [ ! -x "$program" ]; then
  program=$(command -v trainyard) || { echo "run_train.sh: there is no trainyard; ./quickstart builds it, or set TRAINYARD" >&2; exit 2; }
fi

arguments=(--job.config_file "${CONFIG_FILE:-./torchtitan/models/llama3/train_configs/debug_model.toml}" "$@")
if [ -n "${COMM_MODE:-}" ]; then
  arguments+=("--comm.mode=$COMM_MODE" --training.steps=1)
fi
exec "$program" launch --nproc_per_node="${NGPU:-8}" --rdzv_backend c10d --rdzv_endpoint=localhost:0 \
  --local-ranks-filter "${LOG_RANK:-0}" --role rank --tee 3 -m "${TRAIN_FILE:-torchtitan.train}" "${arguments[@]}"
