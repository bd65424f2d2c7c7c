// A page: one client instance and what a web page would keep in its tab's storage. leave() is the refresh: the page
// dies, and the next one gets what it kept and nothing else.
import { EventEmitter } from 'node:events';
import { until } from './until.mjs';

// A bound for a hang, as all of them here: a busy machine takes many times what an idle one does.
const callTimeout = 120_000;

const isRequest = (message) => message.method !== undefined && message.id !== undefined;

export class Page extends EventEmitter {
    /** Messages in the order the transport handed them over; the list stops when the page dies. */
    seen = [];
    errors = [];
    /** What the server asked of this page: method and params. */
    asked = [];
    calls = new Map();
    #face;
    #options;
    #gone = false;
    /** The call whose event is being handed over. */
    #reading;
    /** Whose questions they are, in the order in which the client answers them. */
    #questions = [];

    constructor(adapter, options) {
        super();
        this.setMaxListeners(0);
        this.#options = options;
        const answer = options.answer && ((method, params) => this.#answer(method, params));
        this.#face = adapter.open({ ...options, answer });
        const { transport, client } = this.#face;
        transport.onmessage = (message) => this.#note(() => {
            this.seen.push(structuredClone(message));
            if (isRequest(message))
                this.#hold(this.#reading);
            this.#reading = undefined;
        });
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
            questions: 0,
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
        const call = { ...saved, questions: 0 };
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

    /** Answers a question that an earlier page was asked and kept. */
    respond(id, result) {
        return this.#face.transport.send({ jsonrpc: '2.0', id, result });
    }

    /** What the tab's storage holds now. */
    keep() {
        return {
            sessionId: this.sessionId,
            version: this.version,
            calls: Object.fromEntries(
                [...this.calls].map(
                    ([key, { cursor, newest, id, exchange }]) => [key, { cursor, newest, id, exchange }])),
        };
    }

    async leave() {
        this.#gone = true;
        const kept = this.keep();
        await this.#face.client.close();
        return kept;
    }

    #cursor(call) {
        // The transport reports an event's id and then, before anything else can run, its message: what a page has
        // kept and what it has seen never differ. The cursor stays before a question until that is answered.
        return {
            onresumptiontoken: (id) => this.#note(() => {
                this.#reading = call;
                call.before = call.cursor;
                call.newest = id;
                if (call.questions === 0)
                    call.cursor = id;
            }),
        };
    }

    #hold(call) {
        this.#questions.push(call);
        if (!call)
            return;
        call.questions += 1;
        call.cursor = call.before;
    }

    async #answer(method, params) {
        const call = this.#questions.shift();
        this.#note(() => this.asked.push({ method, params }));
        const result = await this.#options.answer(method, params);
        this.#note(() => {
            if (call && (call.questions -= 1) === 0)
                call.cursor = call.newest;
        });
        return result;
    }

    #note(what) {
        if (this.#gone)
            return;
        what();
        this.emit('change');
    }
}
