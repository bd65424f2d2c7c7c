// A TCP proxy that cuts connections: all at once, or a call's event stream after a number of bytes. It can also hold a
// stream back there, so that it is known how far the client can have come.
import { createServer, connect } from 'node:net';
import { once } from 'node:events';

export class Proxy {
    #pairs = new Set();
    #listener;
    #budget;
    #holds;
    cuts = 0;

    /**
     * `budget()` gives for each connection that carries a call's events how many bytes pass after its first event
     * (Infinity: all). The first event always passes: a stock client that has got a response without an id on it
     * forgets its cursor, and no server can help that. Then the connection is cut or, with `holds`, stands still.
     */
    static async start(target, budget = () => Infinity, { holds = false } = {}) {
        const proxy = new Proxy();
        proxy.#budget = budget;
        proxy.#holds = holds;
        proxy.#listener = createServer((down) => proxy.#accept(down, target));
        proxy.#listener.listen(0, '127.0.0.1');
        await once(proxy.#listener, 'listening');
        proxy.url = new URL(target);
        proxy.url.port = proxy.#listener.address().port;
        return proxy;
    }

    /** Ends every connection with a reset. */
    destroyAll() {
        for (const pair of this.#pairs)
            pair.forEach((socket) => socket.resetAndDestroy());
    }

    async close() {
        this.#listener.close();
        this.destroyAll();
    }

    #accept(down, target) {
        const up = connect(Number(target.port), target.hostname);
        const pair = [down, up];
        this.#pairs.add(pair);
        const drop = () => {
            this.#pairs.delete(pair);
            down.destroy();
            up.destroy();
        };
        pair.forEach((socket) => socket.setNoDelay().on('error', drop).on('close', drop));
        let request = '';
        let head = '';
        let left = Infinity;
        down.on('data', (chunk) => {
            // A client sends its next request only after the answer to the last one.
            const text = chunk.toString('latin1');
            if (/^(POST|GET|DELETE) /.test(text)) {
                request = '';
                head = '';
                left = Infinity;
            }
            request += text;
            up.write(chunk);
        });
        up.on('data', (chunk) => {
            if (left === Infinity && head !== undefined) {
                const before = head.length;
                head += chunk.toString('latin1');
                const first = firstEventEnd(head);
                if (first !== undefined) {
                    head = undefined;
                    if (/"tools\/call"|\nlast-event-id:/i.test(request) && !Number.isNaN(first))
                        left = first - before + this.#budget();
                }
            }
            if (chunk.length < left) {
                left -= chunk.length;
                down.write(chunk);
                return;
            }
            if (this.#holds) {
                up.pause();
                down.write(chunk.subarray(0, left));
                return;
            }
            this.cuts += 1;
            up.destroy();
            down.end(chunk.subarray(0, left), drop);
        });
        up.on('end', () => down.end());
        down.on('end', () => up.end());
    }
}

/** Where the first event of an event stream ends; NaN for another response; undefined if more bytes must come. */
function firstEventEnd(text) {
    const body = text.indexOf('\r\n\r\n');
    if (body < 0)
        return undefined;
    if (!/^content-type: text\/event-stream/im.test(text.slice(0, body)))
        return NaN;
    const end = text.indexOf('\n\n', body + 4);
    return end < 0 ? undefined : end + 2;
}
