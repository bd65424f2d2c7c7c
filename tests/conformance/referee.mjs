// Runs the official suite, reads every scenario's checks.json, and prints a table. The suite's own exit code is not
// enough: it lets warnings pass, and a scenario that checked nothing.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Server } from '../clients/lib/server.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const execute = promisify(execFile);

/** A suite's scenarios come from its own list; `also` are asked for by name, so that a list without them is noticed. */
const suites = [
    { version: '0.1.16', package: 'conformance', list: [], server: ['--suite', 'all'],
      also: ['server-sse-polling', 'json-schema-2020-12'] },
    { version: '0.2.0-alpha.12', package: 'conformance-next', list: ['--requirements', '2025-11-25'],
      server: ['--requirements', '2025-11-25'],
      also: ['server-sse-polling', 'json-schema-2020-12', 'server-session-lifecycle'] },
];

/** The suite's exit code says too little to stop for; its output is shown when a scenario fails. */
async function suite({ package: name }, ...args) {
    const program = here(`node_modules/${name}/dist/index.js`);
    try {
        const { stdout, stderr } = await execute(
            process.execPath, [program, ...args], { timeout: 100_000, maxBuffer: 64 << 20 });
        return stdout + stderr;
    } catch (error) {
        return `${error.stdout}${error.stderr}${error.message}\n`;
    }
}

/** Names of the server's scenarios: the first list, and those marked [server] among the ones that are not scored. */
function namesIn(listing) {
    const [servers] = listing.split(/^Client scenarios/m);
    const unscored = [...listing.matchAll(/^ *- (\S+) \[server\]$/gm)];
    return [...servers.matchAll(/^ *- (\S+)/gm), ...unscored].map(([, scenario]) => scenario);
}

/** The checks of each scenario; the suite names a scenario's folder server-<scenario>-<time>. */
function checksIn(folder) {
    const found = new Map();
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
        const [, scenario] = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(name) ?? [];
        if (scenario)
            found.set(scenario, JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')));
    }
    return found;
}

/** Where a server that does nothing of it gets away with remarks: priming, retry and resume must each succeed. */
const least = { 'server-sse-polling': 3 };

/** What is wrong with a scenario's checks. */
function faultsIn(scenario, checks) {
    const faults = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        .map(({ status, id, errorMessage, description }) => `${status} ${id}: ${errorMessage ?? description}`);
    // That the messages are well formed says nothing of the feature.
    const good = checks.filter(({ status, id }) => status === 'SUCCESS' && id !== 'wire-schema-valid').length;
    const enough = least[scenario] ?? 1;
    if (good < enough)
        faults.push(`${good} checks succeeded, ${enough} expected: the scenario did not get to its point`);
    return faults;
}

const count = (checks, wanted) => String(checks.filter(({ status }) => status === wanted).length).padStart(4);

function row(version, scenario, checks, verdict) {
    const counts = ['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO'].map((status) => count(checks, status)).join(' ');
    console.log(`${version.padEnd(15)} ${scenario.padEnd(32)} ${counts}  ${verdict}`);
}

const escaped = (text) => text.replace(/[^\w .:/-]/g, (sign) => `&#${sign.codePointAt(0)};`);

/** For machines, as JUnit writes it; pending ones are skipped. */
function writeResults(file, results) {
    const inside = { passed: '', FAILED: '<failure/>', pending: '<skipped/>' };
    const cases = results.map(([name, verdict]) => `<testcase name="${escaped(name)}">${inside[verdict]}</testcase>\n`);
    writeFileSync(file, `<testsuite name="conformance">\n${cases.join('')}</testsuite>\n`);
}

const asked = process.argv.slice(2);
const pendingFile = here('pending.txt');
const pending = new Set(existsSync(pendingFile)
    ? readFileSync(pendingFile, 'utf8').split('\n').filter((line) => line && !line.startsWith('#')) : []);
const results = [];
const totals = { passed: 0, failed: 0, pending: 0 };
console.log(`${'suite'.padEnd(15)} ${'scenario'.padEnd(32)}   ok fail warn skip info`);

for (const one of suites) {
    const wanted = new Set([...namesIn(await suite(one, 'list', '--server', ...one.list)), ...one.also]);
    const chosen = asked.length > 0 ? asked.filter((scenario) => wanted.has(scenario)) : [...wanted];
    const work = mkdtempSync(join(tmpdir(), 'conformance-'));
    const server = await Server.start();
    let output = '';
    try {
        const common = ['server', '--url', server.url.href, '-o', work];
        if (asked.length === 0)
            output = await suite(one, ...common, ...one.server);
        for (const scenario of asked.length > 0 ? chosen : [])
            output += await suite(one, ...common, '--scenario', scenario);
        const found = checksIn(work);
        const failed = [];
        for (const scenario of new Set([...chosen, ...found.keys()])) {
            const checks = found.get(scenario) ?? [];
            const faults = faultsIn(scenario, checks);
            const isPending = pending.has(`${one.version} ${scenario}`);
            if (isPending && faults.length === 0)
                faults.push('passes: remove it from pending.txt');
            else if (isPending)
                faults.length = 0;
            const verdict = faults.length > 0 ? 'FAILED' : isPending ? 'pending' : 'passed';
            totals[verdict.toLowerCase()] += 1;
            results.push([`${one.version} ${scenario}`, verdict]);
            row(one.version, scenario, checks, verdict);
            if (faults.length > 0)
                failed.push(`${scenario}\n${faults.map((fault) => `    ${fault}`).join('\n')}`);
        }
        if (failed.length > 0)
            console.log(`\n${output}\n${one.version}: failed\n${failed.join('\n')}\n`);
        await server.stop();
    } catch (error) {
        totals.failed += 1;
        results.push([`${one.version}: ${error}`, 'FAILED']);
        console.log(String(error));
        await server.stop().catch(() => {});
    } finally {
        rmSync(work, { recursive: true, force: true });
    }
}

if (process.env.BELAY_RESULTS)
    writeResults(process.env.BELAY_RESULTS, results);
if (totals.passed + totals.failed + totals.pending === 0)
    console.log(`no such scenario: ${asked.join(' ')}; without arguments, all of them run`);
if (totals.pending > 0)
    console.log(`${totals.pending} pending`);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exit(totals.failed === 0 && totals.passed + totals.pending > 0 ? 0 : 1);
