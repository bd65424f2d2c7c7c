# npm_packages FOLDER: installs the packages of its lockfile, unless they are there. Sourced, not run.
npm_packages() {
    # npm writes this file into node_modules last.
    if [[ ! $1/node_modules/.package-lock.json -nt $1/package-lock.json ]]; then
        # Not `npm ci`: it refuses a lockfile without the packages of other platforms, which npm itself leaves out.
        # The versions are those of the lockfile all the same.
        (cd "$1" && npm install --no-save --no-audit --no-fund)
        touch "$1/node_modules/.package-lock.json"
    fi
}
