// The two official clients behind one face. Everything here is their public API.
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';

const info = { name: 'belay-client-tests', version: '0' };

// What a client can be asked; a client that answers declares them.
const sampling = 'sampling/createMessage';
const elicitation = 'elicitation/create';
const capabilities = { sampling: {}, elicitation: {} };

/**
 * Options of open(): url; wire; sessionId of an earlier page; version, the header a resumed page sends (none without
 * it); offer, the protocol version to initialize with; headers; reconnectionOptions; answer(method, params), which
 * makes the client one that can be asked.
 */
export const v1 = {
    name: 'v1',
    open({ url, wire, sessionId, version, offer, headers, reconnectionOptions, answer }) {
        // v1 has no setting for the version it offers.
        const rewrite = offer && ((message) => message.method === 'initialize'
            ? { ...message, params: { ...message.params, protocolVersion: offer } } : message);
        const transport = new TransportV1(
            url, { sessionId, requestInit: { headers }, reconnectionOptions, fetch: wire.fetch(rewrite) });
        const client = new ClientV1(info, answer ? { capabilities } : {});
        if (answer) {
            client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer(sampling, params));
            client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(elicitation, params));
        }
        return {
            client,
            transport,
            async connect() {
                await client.connect(transport);
                if (sessionId && version)
                    transport.setProtocolVersion(version);
            },
            callTool: (params, options) => client.callTool(params, CallToolResultSchema, options),
            resume: (params, options) =>
                client.request({ method: 'tools/call', params }, CallToolResultSchema, options),
        };
    },
    /** The client of a program that is started; options as StdioClientTransport has them. */
    openStdio(options) {
        const client = new ClientV1(info);
        return {
            client,
            transport: new StdioV1(options),
            callTool: (params, more) => client.callTool(params, CallToolResultSchema, more),
        };
    },
};

export const v2 = {
    name: 'v2',
    open({ url, wire, sessionId, version, offer, headers, reconnectionOptions, answer }) {
        const transport = new TransportV2(url, {
            sessionId, requestInit: { headers }, reconnectionOptions, fetch: wire.fetch(),
            protocolVersion: sessionId ? version : undefined,
        });
        const client = new ClientV2(
            info, { ...(offer && { supportedProtocolVersions: [offer] }), ...(answer && { capabilities }) });
        for (const method of answer ? [sampling, elicitation] : [])
            client.setRequestHandler(method, ({ params }) => answer(method, params));
        return {
            client,
            transport,
            connect: () => client.connect(transport),
            callTool: (params, options) => client.callTool(params, options),
            resume: (params, options) => client.request({ method: 'tools/call', params }, options),
        };
    },
    openStdio(options) {
        const client = new ClientV2(info);
        return {
            client,
            transport: new StdioV2(options),
            callTool: (params, more) => client.callTool(params, more),
        };
    },
};

export const clients = [v1, v2];
