// What went over the wire, seen from a fetch that is handed to the clients: every exchange with its bytes, and how
// each event stream ended. With `connections`, requests queue for a slot as in a browser's pool.
import { EventEmitter } from 'node:events';
import { until } from './until.mjs';

/** The whole events of an SSE text; a cut one at the end is left out, as the standard says. */
export function parseEvents(text) {
    const events = [];
    let event = {};
    const end = text.lastIndexOf('\n\n');
    for (const line of text.slice(0, end < 0 ? 0 : end + 2).split('\n')) {
        if (line === '') {
            if (Object.keys(event).length > 0)
                events.push(event);
            event = {};
        } else if (!line.startsWith(':')) {
            const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
            event[name] = name === 'data' && 'data' in event ? `${event.data}\n${value}` : value;
        }
    }
    return events;
}

export class Wire extends EventEmitter {
    exchanges = [];
    open = 0;
    #free;
    #queue = [];

    constructor({ connections = Infinity } = {}) {
        super();
        this.setMaxListeners(0);
        this.#free = connections;
    }

    /** `rewrite` may change a message before it is sent. */
    fetch(rewrite) {
        return async (url, init = {}) => {
            let message = init.body ? JSON.parse(init.body) : undefined;
            if (message && rewrite) {
                message = rewrite(message);
                init = { ...init, body: JSON.stringify(message) };
            }
            const exchange = {
                method: init.method ?? 'GET',
                headers: Object.fromEntries(new Headers(init.headers)),
                message,
                text: '',
                askedAt: performance.now(),
                get events() {
                    return parseEvents(this.text);
                },
            };
            this.exchanges.push(exchange);
            await this.#take(init.signal);
            try {
                const response = await fetch(url, init);
                exchange.status = response.status;
                exchange.stream = response.status === 200
                    && response.headers.get('content-type')?.startsWith('text/event-stream');
                exchange.openedAt = performance.now();
                if (exchange.stream)
                    return this.#watch(exchange, response);
                const body = await response.arrayBuffer();
                this.#end(exchange, 'end');
                const { status, statusText, headers } = response;
                return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers });
            } catch (error) {
                this.#end(exchange, 'error');
                throw error;
            }
        };
    }

    until(condition) {
        return until(this, condition);
    }

    /** A call's exchanges: its POST, and the GETs that resumed from an id seen on one of them. */
    of(call) {
        const ids = new Set();
        return this.exchanges.filter((exchange) => {
            const mine = exchange.message ? exchange.message === call.exchange?.message
                                          : ids.has(exchange.headers['last-event-id']);
            if (mine)
                exchange.events.forEach((event) => ids.add(event.id));
            return mine;
        });
    }

    #watch(exchange, response) {
        const reader = response.body.getReader();
        const decoder = new TextDecoder();
        this.open += 1;
        const end = (how) => {
            this.open -= 1;
            this.#end(exchange, how);
        };
        const body = new ReadableStream({
            pull: async (controller) => {
                try {
                    const { value, done } = await reader.read();
                    if (done) {
                        end('end');
                        controller.close();
                        return;
                    }
                    exchange.text += decoder.decode(value, { stream: true });
                    controller.enqueue(value);
                    this.emit('change');
                } catch (error) {
                    end('error');
                    controller.error(error);
                }
            },
            cancel: async (reason) => {
                end('cancel');
                await reader.cancel(reason);
            },
        });
        this.emit('change');
        return new Response(body, { status: response.status, headers: response.headers });
    }

    #end(exchange, how) {
        exchange.ended = how;
        exchange.endedAt = performance.now();
        this.#free += 1;
        this.#queue.shift()?.();
        this.emit('change');
    }

    async #take(signal) {
        while (this.#free < 1 && !signal?.aborted)
            await new Promise((resolve) => {
                this.#queue.push(resolve);
                signal?.addEventListener('abort', () => {
                    this.#queue = this.#queue.filter((entry) => entry !== resolve);
                    resolve();
                }, { once: true });
            });
        this.#free -= 1;
    }
}
