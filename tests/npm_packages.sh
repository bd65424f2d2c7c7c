# npm_packages FOLDER: installs the packages of its lockfile, unless they are there. Sourced, not run.
npm_packages() {
    # npm writes this file into node_modules last.
    if [[ ! $1/node_modules/.package-lock.json -nt $1/package-lock.json ]]; then
        npm ci --no-audit --no-fund --prefix "$1"
        touch "$1/node_modules/.package-lock.json"
    fi
}
