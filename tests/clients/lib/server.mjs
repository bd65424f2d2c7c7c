// One belay process per test: counters belong to that test, and so does a sanitizer's report.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export function program() {
    if (process.env.BELAY_BIN)
        return process.env.BELAY_BIN;
    const found = ['../../../build/belay', '../../../build/dev/src/belay'].map(here).find((path) => existsSync(path));
    if (!found)
        throw new Error('no belay program: build it or set BELAY_BIN');
    return found;
}

const damage = /ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error/;

export class Server {
    static async start(flags = []) {
        // `timeout` ends the server even if this process is killed and can no longer do it. It passes SIGTERM and
        // the exit code on. --drain is short because a failed test leaves calls running.
        const child = spawn(
            'timeout',
            ['--foreground', '-k', '5', '300',
             program(), 'serve', '--listen', '127.0.0.1:0', '--drain', '1s', ...flags],
            { stdio: ['ignore', 'pipe', 'pipe'] });
        const server = new Server(child);
        await server.#ready;
        return server;
    }

    #child;
    #ready;
    #exited;
    #leave = () => this.#child.kill('SIGTERM');
    errors = '';

    constructor(child) {
        this.#child = child;
        this.#exited = once(child, 'exit');
        process.once('exit', this.#leave);
        child.stderr.setEncoding('utf8').on('data', (text) => (this.errors += text));
        let output = '';
        this.#ready = new Promise((resolve, reject) => {
            child.stdout.setEncoding('utf8').on('data', (text) => {
                output += text;
                const match = /serves MCP at (http:\S+)\s/.exec(output);
                if (match && !this.url)
                    resolve(this.url = new URL(match[1]));
            });
            child.once('error', reject);
            child.once(
                'exit', (code) => reject(new Error(`belay exited with ${code} before it served\n${this.errors}`)));
        });
    }

    /** The counters and gauges, by name with labels. */
    async metrics() {
        const text = await (await fetch(new URL('/metrics', this.url))).text();
        return Object.fromEntries(
            text.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => {
                const space = line.lastIndexOf(' ');
                return [line.slice(0, space), Number(line.slice(space + 1))];
            }));
    }

    /**
     * Waits for something that happens while no connection shows it, so it can only ask again.
     */
    async until(condition) {
        const bound = AbortSignal.timeout(60_000);
        for (;;) {
            const metrics = await this.metrics();
            if (condition(metrics))
                return metrics;
            if (bound.aborted)
                throw new Error(`waited in vain for ${condition}`);
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
    }

    /** Ends the process; throws if it did not end well. */
    async stop() {
        const kill = setTimeout(() => this.#child.kill('SIGKILL'), 30_000);
        this.#child.kill('SIGTERM');
        const [code, signal] = await this.#exited;
        clearTimeout(kill);
        process.off('exit', this.#leave);
        if (code !== 0)
            throw new Error(`belay exited with ${signal ?? code}\n${this.errors}`);
        if (damage.test(this.errors))
            throw new Error(`a sanitizer reported\n${this.errors}`);
    }
}
