// Where the page comes from, with which headers, and what it may talk to.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { notifications, utility } from '../clients/lib/expect.mjs';
import { Server } from '../clients/lib/server.mjs';
import { broken, elsewhere, recovered, refused, scenarios } from './lib/scenario.mjs';
import { StaticSite } from './lib/static.mjs';

/** The page from one origin, its server at another. */
async function otherOrigin(world) {
    const site = await StaticSite.start(elsewhere);
    world.onClose(() => site.close());
    const server = await Server.start(['--allow-origin', site.url.origin]);
    world.onClose(() => server.stop());
    await site.copy(server.url);
    world.allow(server.url);
    const tab = await world.open({ base: site.url, path: `/?server=${encodeURIComponent(server.url)}` });

    const args = utility(6, 200, 'from elsewhere');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await tab.leave();
    const { belay_events_appended_total: before } = await server.metrics();
    await server.until((now) => now.belay_events_appended_total >= before + 3);
    await tab.comeBack();
    await call.checkWhole(args);
    const missed = await call.recovered();
    assert.ok(missed.length >= 3);
    await tab.said(['Reconnecting…', recovered(missed.length)]);
    assert.equal(tab.sessions.length, 1, 'the page could read the session id');
    assert.deepEqual(tab.requests.filter(({ status }) => status >= 400), []);
    assert.ok(tab.requests.some(({ method, cursor }) => method === 'GET' && cursor), 'it resumed by cursor');

    const stopped = await tab.call(notifications, utility(60, 200, 'stop this'));
    await stopped.reaches(2);
    await stopped.cancel.click();
    await stopped.ended();
    await tab.button('Disconnect').click();
    await tab.says('Disconnected');
    await server.until((now) => now.belay_sessions === 0);
}

async function preflight({ server: { url } }) {
    const server = await Server.start(['--allow-origin', 'https://app.example']);
    try {
        const headers = [
            'mcp-session-id', 'mcp-protocol-version', 'last-event-id', 'authorization', 'content-type', 'mcp-method',
            'mcp-name',
        ];
        for (const method of ['POST', 'GET', 'DELETE']) {
            const response = await fetch(server.url, {
                method: 'OPTIONS',
                headers: {
                    origin: 'https://app.example',
                    'access-control-request-method': method,
                    'access-control-request-headers': headers.join(','),
                },
            });
            assert.ok(response.ok);
            assert.equal(response.headers.get('access-control-allow-origin'), 'https://app.example');
            const list = (name) => response.headers.get(name).toLowerCase().split(/,\s*/);
            assert.ok(list('access-control-allow-methods').includes(method.toLowerCase()));
            assert.deepEqual(headers.filter((header) => !list('access-control-allow-headers').includes(header)), []);
        }
        const response = await fetch(server.url, { headers: { origin: 'https://app.example' } });
        assert.match(response.headers.get('access-control-expose-headers'), /mcp-session-id/i);
        const foreign = await fetch(url, { headers: { origin: 'https://app.example' } });
        assert.equal(foreign.status, 403);
    } finally {
        await server.stop();
    }
}

/** A page from an origin that is not allowed gets no session, and says that it has none. */
async function foreignOrigin(world) {
    const { server } = world;
    const site = await StaticSite.start(elsewhere);
    world.onClose(() => site.close());
    await site.copy(server.url);
    world.allow(server.url);
    const tab = await world.tab({ base: site.url, path: `/?server=${encodeURIComponent(server.url)}` });
    await tab.comeBack();
    await tab.button('Retry now').waitFor();
    assert.ok(!tab.statuses.includes('Connected'));
    assert.equal((await server.metrics()).belay_sessions_opened_total, 0);
}

/** A response with its body as it came over the wire. */
async function raw(url, headers = {}) {
    const request = get(url, { headers, agent: false });
    const [response] = await once(request, 'response');
    const chunks = await response.toArray();
    return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

async function headers({ server }) {
    const page = await raw(new URL('/', server.url));
    assert.equal(page.status, 200);
    assert.match(page.headers['content-type'], /^text\/html; ?charset=utf-8$/i);
    const policy = Object.fromEntries(page.headers['content-security-policy'].split(/;\s*/).map((directive) => {
        const [name, ...values] = directive.split(' ');
        return [name, values.join(' ')];
    }));
    for (const name of ['default-src', 'base-uri', 'form-action', 'frame-ancestors'])
        assert.equal(policy[name], "'none'", name);
    assert.equal(policy['script-src'], "'self'");
    assert.equal(policy['style-src'], "'self'");
    assert.doesNotMatch(page.headers['content-security-policy'], /unsafe|\*/);
    assert.equal(page.headers['cache-control'], 'no-cache', 'a new version of the page is seen at once');

    const assets = [...page.body.toString().matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path);
    assert.ok(assets.some((path) => path.endsWith('.js')) && assets.some((path) => path.endsWith('.css')));
    const types = { js: /^text\/javascript/, css: /^text\/css/, svg: /^image\/svg\+xml/ };
    for (const path of ['/', ...assets]) {
        const url = new URL(path, server.url);
        const plain = await raw(url);
        assert.equal(plain.status, 200, path);
        assert.equal(plain.headers['x-content-type-options'], 'nosniff', path);
        assert.match(plain.headers.vary, /accept-encoding/i, path);
        assert.equal(plain.headers['content-encoding'], undefined, path);
        if (path !== '/') {
            assert.match(plain.headers['content-type'], types[path.split('.').at(-1)], path);
            assert.match(plain.headers['cache-control'], /max-age=31536000/, path);
            assert.match(plain.headers['cache-control'], /immutable/, path);
        }
        const zipped = await raw(url, { 'accept-encoding': 'gzip' });
        assert.equal(zipped.headers['content-encoding'], 'gzip', path);
        assert.ok(zipped.body.length < plain.body.length, path);
        assert.deepEqual(gunzipSync(zipped.body), plain.body, path);
        for (const { headers: { etag } } of [plain, zipped]) {
            assert.match(etag, /^(W\/)?"[^"]+"$/, path);
            const again = await raw(url, { 'if-none-match': etag, 'accept-encoding': 'gzip' });
            const { status, body, headers: { etag: same } } = again;
            assert.deepEqual([status, body.length, same], [304, 0, zipped.headers.etag], path);
        }
        const other = await raw(url, { 'if-none-match': '"another"' });
        assert.equal(other.status, 200, path);
    }
    assert.equal((await raw(new URL('/assets/nothing.js', server.url))).status, 404);
    assert.equal((await fetch(new URL('/', server.url), { method: 'POST' })).status, 405);
}

/** The browser asks for the assets once. */
async function cached({ tab: make, context }) {
    const tab = await make();
    const served = [];
    context.on('response', (response) => {
        const { pathname } = new URL(response.url());
        if (/^\/assets\/.*\.(js|css)$/.test(pathname))
            served.push([pathname, response.request().timing().requestStart >= 0]);
    });
    await tab.open();
    const first = served.length;
    assert.ok(first >= 2);
    await tab.leave();
    await tab.open();
    assert.deepEqual(served.slice(first).filter(([, isSent]) => isSent), []);
}

async function off({ server }) {
    assert.equal((await raw(new URL('/', server.url))).status, 404);
}

scenarios('origin', [
    ['a page of another origin (AS-38)', {}, otherOrigin],
    ['preflight (AS-38)', {}, preflight],
    [
        'a page of an origin that is not allowed',
        { expected: [broken, refused(403), /blocked by CORS policy/] },
        foreignOrigin,
    ],
    ['headers of the page and its assets', {}, headers],
    ['assets are cached', {}, cached],
    ['no console', { flags: ['--console', 'off'] }, off],
]);
