// The official Inspector's command line, old and new, against a server over HTTP and over stdio. Each command is a
// process and a session of its own; none of them ends its session.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkPng } from '../clients/lib/expect.mjs';
import { program, Server } from '../clients/lib/server.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** How each version is called, and where in its output the result is. */
const inspectors = [
    { name: '0.22.0', script: here('node_modules/inspector-0/cli/build/cli.js'), flags: [], read: (output) => output },
    ...['legacy', 'auto'].map((era) => ({
        name: `2.12.0 ${era}`,
        script: here('node_modules/inspector-2/clients/launcher/build/index.js'),
        flags: ['--protocol-era', era, '--format', 'json'],
        read: ({ result }) => result,
        // What differs is how it connects.
        few: era === 'auto',
    })),
];

/** [what it shows, the command, what must be printed] */
const commands = [
    ['tools', ['--method', 'tools/list'], ({ tools }) => {
        const echo = tools.find(({ name }) => name === 'echo');
        assert.equal(echo.inputSchema.properties.message.type, 'string');
        assert.deepEqual(echo.inputSchema.required, ['message']);
    }],
    ['a call with a text', ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=out there'],
        ({ content }) => assert.deepEqual(content, [{ type: 'text', text: 'Echo: out there' }])],
    ['a call with numbers', ['--method', 'tools/call', '--tool-name', 'add', '--tool-arg', 'a=2', 'b=40.5'],
        ({ content }) => assert.deepEqual(content, [{ type: 'text', text: 'The sum of 2 and 40.5 is 42.5.' }])],
    ['a call that takes its time',
        ['--method', 'tools/call', '--tool-name', 'longRunningOperation', '--tool-arg', 'duration=0.4', 'steps=4'],
        ({ content }) => assert.equal(
            content[0].text, 'Long running operation completed. Duration: 0.4 seconds, Steps: 4.')],
    ['a call with an image', ['--method', 'tools/call', '--tool-name', 'getTinyImage'],
        ({ content }) => checkPng(content[1])],
    ['resources', ['--method', 'resources/list'], ({ resources }) => {
        assert.ok(resources.length > 0);
        for (const { uri, name } of resources)
            assert.ok(uri && name);
    }],
    ['a resource', ['--method', 'resources/read', '--uri', 'test://static-text'],
        ({ contents }) => assert.deepEqual(contents, [{
            uri: 'test://static-text',
            mimeType: 'text/plain',
            text: 'This is the content of the static text resource.',
        }])],
    ['a resource of a template', ['--method', 'resources/read', '--uri', 'test://template/7/data'],
        ({ contents }) => assert.equal(JSON.parse(contents[0].text).id, '7')],
    ['templates', ['--method', 'resources/templates/list'], ({ resourceTemplates }) => {
        const uris = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
        for (const uri of ['test://static/resource/{id}', 'test://template/{id}/data'])
            assert.ok(uris.includes(uri), uri);
    }],
    ['prompts', ['--method', 'prompts/list'], ({ prompts }) => {
        const names = prompts.map(({ name }) => name);
        for (const name of ['simple_prompt', 'complex_prompt', 'resource_prompt', 'test_prompt_with_arguments'])
            assert.ok(names.includes(name), name);
    }],
    ['a prompt',
        ['--method', 'prompts/get', '--prompt-name', 'test_prompt_with_arguments', '--prompt-args', 'arg1=one', 'arg2=two'],
        ({ messages }) => assert.deepEqual(messages, [{
            role: 'user', content: { type: 'text', text: "Prompt with arguments: arg1='one', arg2='two'" },
        }])],
    ['the log level', ['--method', 'logging/setLevel', '--log-level', 'debug'], (result) => assert.deepEqual(result, {})],
];

let home;
before(async () => (home = await mkdtemp(join(tmpdir(), 'inspector-'))));
after(() => rm(home, { recursive: true, force: true }));

/** Runs one command; the working directory and home are its own, since the Inspector looks for files in both. */
function inspect({ script, flags }, target, command) {
    return new Promise((resolve) => {
        const args = [script, '--cli', ...target, ...flags, ...command];
        const options = { cwd: home, env: { ...process.env, HOME: home }, timeout: 50_000, maxBuffer: 64 << 20 };
        execFile(process.execPath, args, options, (error, stdout, stderr) =>
            resolve({ code: error ? error.code ?? error.signal : 0, stdout, stderr }));
    });
}

async function check(inspector, target, [, command, expect]) {
    const { code, stdout, stderr } = await inspect(inspector, target, command);
    try {
        assert.equal(code, 0);
        expect(inspector.read(JSON.parse(stdout)));
    } catch (error) {
        throw new Error(`it printed\n${stdout}${stderr}`, { cause: error });
    }
}

describe('over HTTP', () => {
    let server;
    before(async () => (server = await Server.start()));
    after(() => server?.stop());
    const target = () => [server.url.href, '--transport', 'http'];
    for (const inspector of inspectors)
        describe(inspector.name, { concurrency: 3 }, () => {
            for (const command of inspector.few ? commands.slice(0, 2) : commands)
                test(command[0], { timeout: 60_000 }, () => check(inspector, target(), command));
            test('an unknown tool fails', { timeout: 60_000 }, async () => {
                const { code, stderr } = await inspect(
                    inspector, target(), ['--method', 'tools/call', '--tool-name', 'no-such-tool']);
                assert.notEqual(code, 0);
                assert.match(stderr, /no-such-tool/);
            });
        });
});

describe('over stdio', () => {
    // `timeout` ends a server whose Inspector was killed.
    const target = ['timeout', '60', program(), 'serve', '--stdio'];
    for (const inspector of inspectors)
        describe(inspector.name, { concurrency: 3 }, () => {
            for (const command of inspector.few ? commands.slice(0, 2) : commands)
                test(command[0], { timeout: 60_000 }, () => check(inspector, target, command));
        });
});
