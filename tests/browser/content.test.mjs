// Results of every kind, forms, resources and prompts, as the page shows them.
import assert from 'node:assert/strict';
import { Proxy } from '../clients/lib/proxy.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, scenarios } from './lib/scenario.mjs';

const checkImage = async (scope) => {
    const image = scope.getByRole('img');
    await image.waitFor();
    await eventually(async () =>
        assert.ok(await image.evaluate(({ complete, naturalWidth }) => complete && naturalWidth > 0)));
};

const checkSound = async (scope) => {
    const sound = scope.locator('audio[controls]');
    await sound.waitFor();
    await eventually(async () => assert.ok(await sound.evaluate(({ error, duration }) => !error && duration > 0)));
};

const has = (text) => async (result) => assert.ok((await result.innerText()).includes(text), `"${text}" is there`);

/** [tool, arguments, what its result must show]. */
const kinds = [
    ['test_simple_text', {}, has('This is a simple text response for testing.')],
    ['test_error_handling', {}, async (result) => {
        await has('This tool intentionally returns an error for testing')(result);
        assert.match(await result.innerText(), /\berror\b/i);
    }],
    ['test_image_content', {}, checkImage],
    ['test_audio_content', {}, checkSound],
    ['test_embedded_resource', {}, async (result) => {
        await has('test://embedded-resource')(result);
        await has('This is an embedded resource content.')(result);
    }],
    ['test_multiple_content_types', {}, async (result) => {
        await checkImage(result);
        assert.match(await result.innerText(), /test:\/\//);
    }],
    ['getTinyImage', {}, checkImage],
    ['annotatedMessage', { messageType: 'error', includeImage: true }, async (result) => {
        await checkImage(result);
        assert.match(await result.innerText(), /error/i);
    }],
    ['getResourceReference', { resourceId: 1 }, has('test://static/resource/1')],
    ['mcp_apps_hello_world', {}, async (result) => {
        for (const key of ['greeting', 'features', 'stats', 'timestamp'])
            await has(key)(result);
    }],
];

async function checkKinds(tab) {
    for (const [tool, args, check] of kinds) {
        const call = await tab.call(tool, args);
        await call.ended();
        try {
            await check(call.result);
            await call.checkOnce();
        } catch (error) {
            throw new Error(`${tool} ${JSON.stringify(args)}: ${error.message}`, { cause: error });
        }
    }
}

async function everyKind({ open }) {
    const tab = await open();
    await checkKinds(tab);
    // All of it is there again after a reload.
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(await tab.page.getByRole('article').count(), kinds.length);
    for (const [tool, , check] of kinds)
        await check(tab.find(tool).result);
}

/** Each call is cut after its first event; its result comes over another connection. */
async function afterTheCut(world) {
    let isCut = false;
    const proxy = await Proxy.start(world.server.url, () => ((isCut = !isCut) ? 0 : Infinity));
    world.onClose(() => proxy.close());
    const tab = await world.open({ base: proxy.url });
    const calls = kinds.filter(([tool]) => ['getTinyImage', 'mcp_apps_hello_world', 'test_simple_text'].includes(tool));
    for (const [tool, args, check] of calls) {
        const before = proxy.cuts;
        const call = await tab.call(tool, args);
        await call.ended();
        await check(call.result);
        await call.checkOnce();
        assert.ok(proxy.cuts > before);
    }
    assert.equal(await tab.page.getByRole('article').count(), calls.length);
}

/** A link says what it leads to, and is followed when somebody wants it. */
async function resourceLinks({ open }) {
    const tab = await open();
    const call = await tab.call('getResourceLinks', { count: 2 });
    await call.ended();
    for (const number of [1, 2])
        await has(`test://static/resource/${number}`)(call.result);
    const read = () => tab.requests.filter(({ message }) => message?.method === 'resources/read')
        .map(({ message }) => message.params.uri);
    assert.deepEqual(read(), []);
    await call.result.getByRole('button', { name: /open/i }).first().click();
    await eventually(() => assert.deepEqual(read(), ['test://static/resource/1']));
}

/** Text is text. */
async function markup({ open, context }) {
    const tab = await open();
    const message = '<img src="/nothing" onerror="document.title=1"><script>document.title=2</script> & **bold**';
    const call = await tab.call('echo', { message });
    await call.ended();
    await has(message)(call.result);
    assert.equal(await call.result.locator('img, script').count(), 0);
    assert.equal(context.pages().length, 1);
}

/** Arguments are checked before they are sent, and sent with the types of the schema. */
async function forms({ open }) {
    const tab = await open();
    const sent = () => tab.requests.filter(({ message }) => message?.method === 'tools/call')
        .map(({ message }) => message.params.arguments);
    await tab.select('add');
    await tab.fill({ a: 2 });
    await tab.button('Run').click();
    const b = tab.form.getByLabel('b', { exact: true });
    await eventually(async () => assert.equal(await b.getAttribute('aria-invalid'), 'true'));
    assert.deepEqual(sent(), []);
    await b.fill('0.5');
    await tab.button('Run').click();
    const sum = tab.find('add');
    await sum.ended();
    await has('2.5')(sum.result);
    await (await tab.call('annotatedMessage', { messageType: 'debug' })).ended();
    const long = tab.form;
    await tab.select('longRunningOperation');
    assert.equal(await long.getByLabel('duration', { exact: true }).inputValue(), '10', 'defaults are filled in');
    await tab.fill({ duration: 0.2, steps: 2 });
    await tab.button('Run').click();
    await tab.find('longRunningOperation').ended();
    const [first, second, third] = sent();
    assert.deepEqual(first, { a: 2, b: 0.5 });
    assert.equal(second.messageType, 'debug');
    assert.ok([undefined, false].includes(second.includeImage));
    assert.deepEqual(third, { duration: 0.2, steps: 2 });

    await tab.select('echo');
    await tab.fill({ message: 'half a sent' });
    await tab.page.reload();
    await eventually(async () =>
        assert.equal(await tab.form.getByLabel('message', { exact: true }).inputValue(), 'half a sent'));
}

/** References, nested objects and conditions of the larger schema. */
async function schema({ open }) {
    const tab = await open();
    const call = await tab.call('json_schema_2020_12_tool', {
        name: 'Ada', street: 'Main Street 1', contactMethod: 'email', email: 'ada@example.com',
    });
    await call.ended();
    const { arguments: args } = tab.requests.find(({ message }) => message?.method === 'tools/call').message.params;
    assert.equal(args.name, 'Ada');
    assert.equal(args.address.street, 'Main Street 1');
    assert.equal(args.contactMethod, 'email');
}

/** Resources and prompts are browsed without a request to anywhere else. */
async function browse({ open }) {
    const tab = await open();
    await tab.button('Resources').click();
    await tab.page.getByText('Resource 1', { exact: true }).first().click();
    await eventually(async () =>
        assert.match(await tab.page.getByRole('main').innerText(), /test:\/\/static\/resource\/1/));
    await tab.button('Prompts').click();
    await tab.button('complex_prompt').click();
    await tab.page.getByLabel('temperature', { exact: true }).fill('0.5');
    await tab.page.getByRole('button', { name: /get/i }).click();
    await eventually(() => assert.ok(tab.requests.some(({ message }) => message?.method === 'prompts/get')));
    await checkImage(tab.page.getByRole('main'));
    await tab.button('Tools').click();
    await tab.button('echo').waitFor();
}

scenarios('content', [
    ['every kind of content', {}, everyKind],
    [
        'results that come after a cut (AS-11)',
        { flags: ['--answer', 'sse', '--retry', '100ms'], expected: [broken] },
        afterTheCut,
    ],
    ['links to resources', {}, resourceLinks],
    ['markup in a result', {}, markup],
    ['forms', {}, forms],
    ['a schema with references', {}, schema],
    ['resources and prompts', {}, browse],
]);
