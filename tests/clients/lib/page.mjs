// A page: one client instance and what a web page would keep in its tab's storage. leave() is the refresh: the page
// dies, and the next one gets what it kept and nothing else.
import { EventEmitter } from 'node:events';
import { until } from './until.mjs';

const callTimeout = 25_000;

export class Page extends EventEmitter {
    /** Messages in the order the transport handed them over; the list stops when the page dies. */
    seen = [];
    errors = [];
    calls = new Map();
    #face;
    #options;
    #gone = false;

    constructor(adapter, options) {
        super();
        this.setMaxListeners(0);
        this.#options = options;
        this.#face = adapter.open(options);
        const { transport, client } = this.#face;
        transport.onmessage = (message) => this.#note(() => this.seen.push(structuredClone(message)));
        client.onerror = (error) => this.#note(() => this.errors.push(error));
    }

    get sessionId() {
        return this.#face.transport.sessionId;
    }

    get version() {
        return this.#face.transport.protocolVersion ?? this.#options.version;
    }

    connect() {
        return this.#face.connect();
    }

    /** A call by the client's own callTool. */
    call(key, name, args = {}) {
        const { wire } = this.#options;
        const text = JSON.stringify(args);
        const since = wire.exchanges.length;
        const call = {
            cursor: undefined,
            get exchange() {
                return wire.exchanges.slice(since).find(({ message }) => message?.method === 'tools/call'
                    && message.params.name === name && JSON.stringify(message.params.arguments) === text);
            },
            get id() {
                return this.exchange?.message.id;
            },
        };
        this.calls.set(key, call);
        call.result = this.#face.callTool({ name, arguments: args }, { timeout: callTimeout, ...this.#cursor(call) });
        // A page that dies takes its promise with it.
        call.result.catch(() => {});
        return call;
    }

    /** The result of an earlier page's call; the client opens a GET with the cursor and posts nothing. */
    resume({ cursor, id }) {
        return this.#face.resume({ name: `resumed-${id}` }, { resumptionToken: cursor, timeout: callTimeout });
    }

    /** Reads on where an earlier page stopped; gives cursors, so that this page can die too. */
    async follow(key, saved) {
        const call = { ...saved };
        this.calls.set(key, call);
        await this.#face.transport.resumeStream(saved.cursor, this.#cursor(call));
        return call;
    }

    cancel(requestId) {
        return this.#face.client.notification(
            { method: 'notifications/cancelled', params: { requestId, reason: 'not needed any more' } });
    }

    ping() {
        return this.#face.client.ping();
    }

    /** Waits until the condition holds; a message, a cursor or an error makes it look again. */
    until(condition) {
        return until(this, condition);
    }

    async leave() {
        this.#gone = true;
        const kept = {
            sessionId: this.sessionId,
            version: this.version,
            calls: Object.fromEntries(
                [...this.calls].map(([key, { cursor, id, exchange }]) => [key, { cursor, id, exchange }])),
        };
        await this.#face.client.close();
        return kept;
    }

    #cursor(call) {
        // The transport reports an event's id and then, before anything else can run, its message: what a page has
        // kept and what it has seen never differ.
        return { onresumptiontoken: (id) => this.#note(() => (call.cursor = id)) };
    }

    #note(what) {
        if (this.#gone)
            return;
        what();
        this.emit('change');
    }
}
