# Which Node is used, and the packages of a folder. Sourced, not run: by the scripts, the tests and the build of the page.

# Debian 12 has Node 18; scripts/setup then puts a newer one here, and an npm, because Debian's works under Debian's
# Node only. On the PATH from the beginning, so that what is put there is what is used.
node_home=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/build/tools/node
node_wanted=20.19 # or 22.12, or newer: what the page's bundler runs with
case :$PATH: in
*:"$node_home/node_modules/.bin":*) ;;
*) export PATH=$node_home/node_modules/.bin:$PATH ;;
esac

has_node() {
    node -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1);
    ' 2>/dev/null && command -v npm >/dev/null
}

# npm_packages FOLDER: installs the packages of its lockfile, unless this Node has done so to the end.
npm_packages() {
    (
        # Several builds may want them at once.
        flock 9 && cd -- "$1" || exit
        made=$(node -p '[process.version, process.platform, process.arch].join(" ")' && sha256sum package-lock.json) || exit
        if [ "$(cat node_modules/.made 2>/dev/null)" = "$made" ]; then
            exit
        fi
        # Not on top of what is there: npm leaves out what does not fit the Node it runs with, and never adds it later.
        rm -rf node_modules ./*/node_modules
        # Not `npm ci`: it refuses a lockfile without the packages of other platforms, which npm itself leaves out.
        # The versions are those of the lockfile all the same.
        npm install --no-save --no-audit --no-fund && printf '%s\n' "$made" >node_modules/.made
    ) 9<"$1"
}
