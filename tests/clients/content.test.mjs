// Every kind of content, in results that no page was there to receive.
import assert from 'node:assert/strict';
import { checkAudio, checkPng } from './lib/expect.mjs';
import { Proxy } from './lib/proxy.mjs';
import { scenarios } from './lib/scenario.mjs';

const types = (result) => result.content.map(({ type }) => type);

/** [tool, arguments, what its result must be]. */
const kinds = [
    ['test_simple_text', {}, ({ content }) =>
        assert.deepEqual(content, [{ type: 'text', text: 'This is a simple text response for testing.' }])],
    ['test_error_handling', {}, ({ content, isError }) => {
        assert.equal(isError, true);
        assert.deepEqual(content, [{ type: 'text', text: 'This tool intentionally returns an error for testing' }]);
    }],
    ['test_image_content', {}, ({ content }) => {
        assert.equal(content.length, 1);
        checkPng(content[0]);
    }],
    ['test_audio_content', {}, ({ content }) => {
        assert.equal(content.length, 1);
        checkAudio(content[0]);
    }],
    ['test_embedded_resource', {}, ({ content }) => assert.deepEqual(content, [{
        type: 'resource',
        resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
        },
    }])],
    ['test_multiple_content_types', {}, (result) => assert.deepEqual(types(result), ['text', 'image', 'resource'])],
    ['getTinyImage', {}, (result) => {
        assert.deepEqual(types(result), ['text', 'image', 'text']);
        checkPng(result.content[1]);
    }],
    ['annotatedMessage', { messageType: 'error', includeImage: true }, (result) => {
        assert.deepEqual(types(result), ['text', 'image']);
        const [text, image] = result.content.map(({ annotations }) => annotations);
        assert.equal(text.priority, 1);
        assert.deepEqual(text.audience.toSorted(), ['assistant', 'user']);
        assert.deepEqual([image.priority, image.audience], [0.5, ['user']]);
    }],
    // An odd one is text, an even one bytes.
    ['getResourceReference', { resourceId: 1 }, (result) => {
        assert.deepEqual(types(result), ['text', 'resource', 'text']);
        const { uri, text, blob } = result.content[1].resource;
        assert.deepEqual([uri, typeof text, blob], ['test://static/resource/1', 'string', undefined]);
    }],
    ['getResourceReference', { resourceId: 2 }, (result) => {
        assert.deepEqual(types(result), ['text', 'resource', 'text']);
        const { uri, text, blob } = result.content[1].resource;
        assert.deepEqual([uri, text, typeof blob], ['test://static/resource/2', undefined, 'string']);
    }],
    ['getResourceLinks', { count: 2 }, (result) => {
        assert.deepEqual(types(result), ['text', 'resource_link', 'resource_link']);
        const links = result.content.slice(1).map(({ uri, name, mimeType }) => [uri, name, mimeType]);
        assert.deepEqual(links, [
            ['test://static/resource/1', 'Resource 1', 'text/plain'],
            ['test://static/resource/2', 'Resource 2', 'application/octet-stream'],
        ]);
    }],
    ['mcp_apps_hello_world', {}, ({ content, structuredContent, _meta }) => {
        assert.equal(content[0].type, 'text');
        assert.deepEqual(
            Object.keys(structuredContent).sort(), ['features', 'greeting', 'stats', 'timestamp']);
        assert.equal(typeof _meta, 'object');
    }],
];

/** Each call is cut after its first event; the next page has that event's id and gets the whole result. */
async function afterTheCut(world) {
    const { server, wire } = world;
    const proxy = await Proxy.start(server.url, () => 0);
    world.onClose(() => proxy.close());
    const page = await world.page({ url: proxy.url });
    const calls = kinds.map(([tool, args], at) => page.call(at, tool, args));
    await page.until(() => calls.every(({ cursor }) => cursor));
    const kept = await page.leave();
    const next = await world.page(kept);
    for (const [at, [tool, args, check]] of kinds.entries()) {
        const call = kept.calls[at];
        const resumed = await next.resume(call);
        try {
            check(resumed);
        } catch (error) {
            throw new Error(`${tool} ${JSON.stringify(args)}`, { cause: error });
        }
        assert.ok(!wire.of(call)[0].text.includes('"result"'), 'the first page had nothing of it');
    }
    assert.equal((await server.metrics()).belay_calls_started_total, kinds.length);
}

scenarios('content', [
    ['every kind of content after a refresh', { flags: ['--answer', 'sse'], errors: true }, afterTheCut],
]);
