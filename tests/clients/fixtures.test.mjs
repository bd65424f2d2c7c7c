// The fixtures that the official conformance suite expects of a server, with the exact output of each: the suite is
// content with any text in places.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { checkAudio, checkPng } from './lib/expect.mjs';
import { Raw } from './lib/raw.mjs';
import { Server } from './lib/server.mjs';

const text = (value) => ({ type: 'text', text: value });

const schema2020 = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
        address: {
            $anchor: 'addressDef',
            type: 'object',
            properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
    },
    properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
};

describe('fixtures', () => {
    let server;
    let plain;
    let asked;
    let questions;
    let answers;

    before(async () => {
        server = await Server.start();
        plain = await Raw.open(server.url);
        asked = await Raw.open(server.url, {
            capabilities: { sampling: {}, elicitation: {} },
            answer: async (method, params) => {
                questions.push({ method, params });
                return answers.shift();
            },
        });
    });
    after(() => server?.stop());

    /** A call of a session that answers; the questions come with the result. */
    async function ask(name, args, ...given) {
        questions = [];
        answers = [...given];
        const { result, error } = await asked.call(name, args);
        assert.equal(error, undefined, JSON.stringify(error));
        assert.equal(questions.length, given.length);
        assert.equal(result.content.length, 1);
        assert.equal(result.content[0].type, 'text');
        assert.notEqual(result.isError, true, result.content[0].text);
        return { text: result.content[0].text, ...questions[0] };
    }

    async function content(name) {
        const { result, error } = await plain.call(name);
        assert.equal(error, undefined, JSON.stringify(error));
        assert.notEqual(result.isError, true, JSON.stringify(result.content));
        return result.content;
    }

    test('tools are listed with description and schema, in the same order each time', async () => {
        const tools = await plain.list('tools/list', 'tools');
        const names = tools.map(({ name }) => name);
        const noArguments = [
            'test_simple_text', 'test_image_content', 'test_audio_content', 'test_embedded_resource',
            'test_multiple_content_types', 'test_error_handling', 'test_tool_with_logging', 'test_tool_with_progress',
            'test_elicitation_sep1034_defaults', 'test_elicitation_sep1330_enums', 'test_reconnection',
        ];
        for (const name of [...noArguments, 'test_sampling', 'test_elicitation', 'json_schema_2020_12_tool'])
            assert.ok(names.includes(name), name);
        assert.equal(new Set(names).size, names.length);
        for (const { name, description, inputSchema } of tools) {
            assert.match(name, /^[A-Za-z0-9_.-]{1,128}$/);
            assert.ok(description, `${name} has a description`);
            assert.equal(inputSchema.type, 'object');
        }
        const schemaOf = (wanted) => tools.find(({ name }) => name === wanted).inputSchema;
        for (const name of noArguments) {
            assert.deepEqual(schemaOf(name).properties ?? {}, {}, name);
            assert.deepEqual(schemaOf(name).required ?? [], [], name);
        }
        for (const [name, argument] of [['test_sampling', 'prompt'], ['test_elicitation', 'message']]) {
            assert.equal(schemaOf(name).properties[argument].type, 'string');
            assert.deepEqual(schemaOf(name).required, [argument]);
        }
        assert.deepEqual(await plain.list('tools/list', 'tools'), tools);
    });

    test('json_schema_2020_12_tool keeps its schema, down to the order of its members', async () => {
        const tools = await plain.list('tools/list', 'tools');
        const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
        assert.equal(JSON.stringify(inputSchema), JSON.stringify(schema2020));
    });

    test('test_simple_text', async () => {
        assert.deepEqual(await content('test_simple_text'), [text('This is a simple text response for testing.')]);
    });

    test('test_image_content', async () => {
        const [image, ...rest] = await content('test_image_content');
        checkPng(image);
        assert.deepEqual(rest, []);
    });

    test('test_audio_content', async () => {
        const [audio, ...rest] = await content('test_audio_content');
        checkAudio(audio);
        assert.deepEqual(rest, []);
    });

    test('test_embedded_resource', async () => {
        assert.deepEqual(await content('test_embedded_resource'), [{
            type: 'resource',
            resource: {
                uri: 'test://embedded-resource',
                mimeType: 'text/plain',
                text: 'This is an embedded resource content.',
            },
        }]);
    });

    test('test_multiple_content_types', async () => {
        const [first, image, resource, ...rest] = await content('test_multiple_content_types');
        assert.deepEqual(first, text('Multiple content types test:'));
        checkPng(image);
        assert.deepEqual([resource.type, resource.resource.uri, resource.resource.mimeType],
            ['resource', 'test://mixed-content-resource', 'application/json']);
        assert.deepEqual(JSON.parse(resource.resource.text), { test: 'data', value: 123 });
        assert.deepEqual(rest, []);
    });

    test('test_error_handling', async () => {
        const { result } = await plain.call('test_error_handling');
        assert.equal(result.isError, true);
        assert.deepEqual(result.content, [text('This tool intentionally returns an error for testing')]);
    });

    test('an unknown tool is an error of the protocol, not a text', async () => {
        const { error, result } = await plain.call('test_no_such_tool');
        assert.equal(result, undefined);
        assert.equal(error.code, -32602);
        assert.match(error.message, /tools\/list/);
    });

    test('test_tool_with_logging', async () => {
        assert.deepEqual(await plain.result('logging/setLevel', { level: 'debug' }), {});
        const { result, notes } = await plain.call('test_tool_with_logging');
        assert.deepEqual(notes.map(({ method, params: { level, data } }) => [method, level, data]), [
            ['notifications/message', 'info', 'Tool execution started'],
            ['notifications/message', 'info', 'Tool processing data'],
            ['notifications/message', 'info', 'Tool execution completed'],
        ]);
        assert.deepEqual(result.content.map(({ type }) => type), ['text']);
        assert.ok(result.content[0].text);
    });

    test('test_tool_with_logging respects the level', async () => {
        const quiet = await Raw.open(server.url);
        assert.deepEqual(await quiet.result('logging/setLevel', { level: 'warning' }), {});
        const { result, notes } = await quiet.call('test_tool_with_logging');
        assert.notEqual(result.isError, true);
        assert.deepEqual(notes, []);
    });

    test('test_tool_with_progress', async () => {
        for (const progressToken of ['a token', 7]) {
            const { result, notes } = await plain.call('test_tool_with_progress', {}, { progressToken });
            const steps = notes.filter(({ method }) => method === 'notifications/progress')
                .map(({ params }) => [params.progressToken, params.progress, params.total]);
            assert.deepEqual(steps, [0, 50, 100].map((at) => [progressToken, at, 100]));
            assert.deepEqual(result.content.map(({ type }) => type), ['text']);
        }
        const { result, notes } = await plain.call('test_tool_with_progress');
        assert.notEqual(result.isError, true);
        assert.deepEqual(notes, [], 'nobody asked for progress');
    });

    test('test_sampling', async () => {
        const answer = { role: 'assistant', model: 'referee', content: text('forty-two'), stopReason: 'endTurn' };
        const { text: said, method, params } = await ask('test_sampling', { prompt: 'How many?' }, answer);
        assert.equal(said, 'LLM response: forty-two');
        assert.equal(method, 'sampling/createMessage');
        assert.equal(params.maxTokens, 100);
        assert.equal(params.messages.length, 1);
        assert.equal(params.messages[0].role, 'user');
        assert.deepEqual([params.messages[0].content].flat(), [text('How many?')]);
    });

    test('a client that cannot be asked gets a tool error that says so', async () => {
        for (const [name, args, what] of [
            ['test_sampling', { prompt: 'How many?' }, /sampling/],
            ['test_elicitation', { message: 'Who?' }, /elicitation/],
        ]) {
            const { result, notes } = await plain.call(name, args);
            assert.deepEqual(notes, []);
            assert.equal(result.isError, true);
            assert.match(result.content[0].text, what);
        }
    });

    test('test_elicitation', async () => {
        const answer = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } };
        const { text: said, method, params } = await ask('test_elicitation', { message: 'Who are you?' }, answer);
        assert.match(said, /^User response: /);
        assert.match(said, /accept/);
        assert.match(said, /ada@example\.com/);
        assert.equal(method, 'elicitation/create');
        assert.equal(params.message, 'Who are you?');
        const { type, properties, required } = params.requestedSchema;
        assert.equal(type, 'object');
        assert.deepEqual(Object.entries(properties).map(([name, { type: kind }]) => [name, kind]),
            [['username', 'string'], ['email', 'string']]);
        assert.deepEqual(required, ['username', 'email']);
        for (const action of ['decline', 'cancel']) {
            const { text: refused } = await ask('test_elicitation', { message: 'Who are you?' }, { action });
            assert.match(refused, /^User response: /);
            assert.match(refused, new RegExp(action));
        }
    });

    test('test_elicitation_sep1034_defaults', async () => {
        const { params } = await ask('test_elicitation_sep1034_defaults', {}, { action: 'decline' });
        const { properties } = params.requestedSchema;
        assert.deepEqual(Object.entries(properties).map(([name, it]) => [name, it.type, it.default]), [
            ['name', 'string', 'John Doe'],
            ['age', 'integer', 30],
            ['score', 'number', 95.5],
            ['status', 'string', 'active'],
            ['verified', 'boolean', true],
        ]);
        assert.deepEqual(properties.status.enum, ['active', 'inactive', 'pending']);
    });

    test('test_elicitation_sep1330_enums', async () => {
        const { params } = await ask('test_elicitation_sep1330_enums', {}, { action: 'decline' });
        const { untitledSingle, titledSingle, legacyEnum, untitledMulti, titledMulti, ...rest }
            = params.requestedSchema.properties;
        assert.deepEqual(rest, {});
        const titled = (list) => list.every((it) => typeof it.const === 'string' && typeof it.title === 'string');
        assert.equal(untitledSingle.type, 'string');
        assert.ok(untitledSingle.enum.length > 0 && !untitledSingle.oneOf && !untitledSingle.enumNames);
        assert.equal(titledSingle.type, 'string');
        assert.ok(titledSingle.oneOf.length > 0 && titled(titledSingle.oneOf) && !titledSingle.enum);
        assert.equal(legacyEnum.type, 'string');
        assert.equal(legacyEnum.enum.length, legacyEnum.enumNames.length);
        assert.deepEqual([untitledMulti.type, untitledMulti.items.type], ['array', 'string']);
        assert.ok(untitledMulti.items.enum.length > 0);
        assert.equal(titledMulti.type, 'array');
        assert.ok(titledMulti.items.anyOf.length > 0 && titled(titledMulti.items.anyOf) && !titledMulti.items.enum);
    });

    test('prompts are listed with description and arguments', async () => {
        const prompts = await plain.list('prompts/list', 'prompts');
        for (const { name, description } of prompts)
            assert.ok(name && description, `${name} has a description`);
        const argumentsOf = (wanted) => prompts.find(({ name }) => name === wanted).arguments
            ?.map(({ name, required }) => [name, required]) ?? [];
        assert.deepEqual(argumentsOf('test_simple_prompt'), []);
        assert.deepEqual(argumentsOf('test_prompt_with_arguments'), [['arg1', true], ['arg2', true]]);
        assert.deepEqual(argumentsOf('test_prompt_with_embedded_resource'), [['resourceUri', true]]);
        assert.deepEqual(argumentsOf('test_prompt_with_image'), []);
    });

    const prompt = async (name, args) => (await plain.result('prompts/get', { name, arguments: args })).messages;

    test('test_simple_prompt', async () => {
        assert.deepEqual(
            await prompt('test_simple_prompt'), [{ role: 'user', content: text('This is a simple prompt for testing.') }]);
    });

    test('test_prompt_with_arguments', async () => {
        const said = text("Prompt with arguments: arg1='hello', arg2='world'");
        assert.deepEqual(
            await prompt('test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' }),
            [{ role: 'user', content: said }]);
        const { error } = await plain.request(
            'prompts/get', { name: 'test_prompt_with_arguments', arguments: { arg1: 'hello' } });
        assert.equal(error.code, -32602);
        assert.match(error.message, /arg2/);
    });

    test('test_prompt_with_embedded_resource', async () => {
        const uri = 'test://example-resource';
        const messages = await prompt('test_prompt_with_embedded_resource', { resourceUri: uri });
        const resource = { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' };
        assert.deepEqual(messages, [
            { role: 'user', content: { type: 'resource', resource } },
            { role: 'user', content: text('Please process the embedded resource above.') },
        ]);
    });

    test('test_prompt_with_image', async () => {
        const [image, ...rest] = await prompt('test_prompt_with_image');
        assert.equal(image.role, 'user');
        checkPng(image.content);
        assert.deepEqual(rest, [{ role: 'user', content: text('Please analyze the image above.') }]);
    });

    test('an unknown prompt', async () => {
        const { error } = await plain.request('prompts/get', { name: 'test_no_such_prompt' });
        assert.equal(error.code, -32602);
    });

    test('completion of an argument', async () => {
        const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
        const { completion } = await plain.result('completion/complete', { ref, argument: { name: 'arg1', value: 'te' } });
        assert.ok(Array.isArray(completion.values));
        assert.ok(completion.values.every((value) => typeof value === 'string' && value.startsWith('te')));
    });

    const read = async (uri) => (await plain.result('resources/read', { uri })).contents;

    test('resources and templates are listed', async () => {
        const resources = await plain.list('resources/list', 'resources');
        for (const { uri, name } of resources)
            assert.ok(uri && name);
        const uris = resources.map(({ uri }) => uri);
        assert.equal(new Set(uris).size, uris.length);
        for (const uri of ['test://static-text', 'test://static-binary', 'test://watched-resource'])
            assert.ok(uris.includes(uri), uri);
        const templates = await plain.list('resources/templates/list', 'resourceTemplates');
        assert.ok(templates.some(({ uriTemplate, name }) => uriTemplate === 'test://template/{id}/data' && name));
    });

    test('test://static-text', async () => {
        assert.deepEqual(await read('test://static-text'), [{
            uri: 'test://static-text',
            mimeType: 'text/plain',
            text: 'This is the content of the static text resource.',
        }]);
    });

    test('test://static-binary', async () => {
        const [{ uri, mimeType, blob, text: none }, ...rest] = await read('test://static-binary');
        assert.deepEqual([uri, none, rest], ['test://static-binary', undefined, []]);
        checkPng({ type: 'image', mimeType, data: blob });
    });

    test('test://template/{id}/data', async () => {
        for (const id of ['123', 'a-b']) {
            const [{ uri, mimeType, text: body }, ...rest] = await read(`test://template/${id}/data`);
            assert.deepEqual([uri, mimeType, rest], [`test://template/${id}/data`, 'application/json', []]);
            assert.deepEqual(JSON.parse(body), { id, templateTest: true, data: `Data for ID: ${id}` });
        }
    });

    test('test://watched-resource can be subscribed to, and left', async () => {
        const params = { uri: 'test://watched-resource' };
        assert.deepEqual(await plain.result('resources/subscribe', params), {});
        assert.deepEqual(await plain.result('resources/unsubscribe', params), {});
    });

    test('an unknown resource', async () => {
        const uri = 'test://no-such-resource';
        const { error, result } = await plain.request('resources/read', { uri });
        assert.equal(result, undefined);
        assert.equal(error.code, -32002);
        assert.equal(error.data.uri, uri);
    });

    test('ping and setLevel answer with nothing at all', async () => {
        assert.deepEqual(await plain.result('ping'), {});
        assert.deepEqual(await plain.result('logging/setLevel', { level: 'info' }), {});
    });
});
