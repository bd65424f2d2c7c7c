// A client made of fetch and nothing else, for what an official client would check, hide or add.
import assert from 'node:assert/strict';
import { isResponse } from './expect.mjs';
import { parseEvents } from './wire.mjs';

export class Raw {
    #url;
    #headers = {};
    #next = 1;

    /** A session of its own; `answer(method, params)` answers what the server asks. */
    static async open(url, { version = '2025-11-25', capabilities = {}, answer } = {}) {
        const raw = new Raw();
        raw.#url = url;
        raw.answer = answer;
        const clientInfo = { name: 'belay-raw', version: '0' };
        const { result, headers }
            = await raw.request('initialize', { protocolVersion: version, capabilities, clientInfo });
        assert.equal(result.protocolVersion, version);
        raw.server = result;
        raw.#headers = { 'mcp-session-id': headers.get('mcp-session-id'), 'mcp-protocol-version': version };
        assert.equal((await raw.post({ method: 'notifications/initialized' })).status, 202);
        return raw;
    }

    post(message) {
        return fetch(this.#url, {
            method: 'POST',
            headers: {
                'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.#headers,
            },
            body: JSON.stringify({ jsonrpc: '2.0', ...message }),
            signal: AbortSignal.timeout(60_000),
        });
    }

    /** The response of a request, and before it in `notes` whatever else came on its stream. */
    async request(method, params) {
        const id = this.#next++;
        const response = await this.post({ id, method, params });
        const notes = [];
        for await (const message of this.#messages(response)) {
            assert.equal(message.jsonrpc, '2.0');
            if (isResponse(message)) {
                assert.equal(message.id, id);
                return { ...message, notes, headers: response.headers, status: response.status };
            }
            notes.push(message);
            if (message.id !== undefined) {
                const result = await this.answer(message.method, message.params);
                assert.equal((await this.post({ id: message.id, result })).status, 202);
            }
        }
        throw new Error(`${method}: no response came`);
    }

    /** The result; an error is one of the test's. */
    async result(method, params) {
        const { result, error } = await this.request(method, params);
        assert.equal(error, undefined, `${method}: ${JSON.stringify(error)}`);
        return result;
    }

    call(name, args, meta) {
        return this.request('tools/call', { name, arguments: args, _meta: meta });
    }

    /** All pages of a list. */
    async list(method, member) {
        const found = [];
        let cursor;
        do {
            const page = await this.result(method, cursor === undefined ? undefined : { cursor });
            found.push(...page[member]);
            cursor = page.nextCursor;
            assert.ok(found.length < 1000, 'a list ends');
        } while (cursor !== undefined);
        return found;
    }

    async* #messages(response) {
        if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
            yield await response.json();
            return;
        }
        let text = '';
        let count = 0;
        for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
            text += part;
            const events = parseEvents(text);
            for (const { data } of events.slice(count))
                if (data)
                    yield JSON.parse(data);
            count = events.length;
        }
    }
}
