# Begins a shell for a person, in the job's own folder where it is there.
# usage: sh -c PERSON person TERMINAL PATH-FOLDER FOLDER...
TERM=$1 PATH=$PATH:$2
export TERM PATH
shift 2
for folder; do
	cd "$folder" 2>/dev/null && break
done
command -v bash >/dev/null && exec bash
exec sh
