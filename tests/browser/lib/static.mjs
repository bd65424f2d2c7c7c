// The console's files from another origin, as a page of somebody else's would be served.
import { once } from 'node:events';
import { createServer } from 'node:http';

export class StaticSite {
    #listener;
    #files = new Map();

    /** `host` is its name for the browser, which finds it on this machine. */
    static async start(host) {
        const site = new StaticSite();
        site.#listener = createServer((request, response) => site.#answer(request, response));
        site.#listener.listen(0, '127.0.0.1');
        await once(site.#listener, 'listening');
        site.url = new URL(`http://${host}:${site.#listener.address().port}/`);
        return site;
    }

    /** Takes over the page of a Belay server, with what it refers to. */
    async copy(origin) {
        const page = await this.#fetch(new URL('/', origin));
        for (const [, path] of page.matchAll(/(?:src|href)="(\/[^"]+)"/g))
            await this.#fetch(new URL(path, origin));
    }

    close() {
        this.#listener.closeAllConnections();
        this.#listener.close();
    }

    async #fetch(url) {
        const response = await fetch(url);
        if (response.status !== 200)
            throw new Error(`${url}: ${response.status}`);
        const body = Buffer.from(await response.arrayBuffer());
        this.#files.set(url.pathname, { type: response.headers.get('content-type'), body });
        return body.toString();
    }

    #answer({ url }, response) {
        const file = this.#files.get(new URL(url, this.url).pathname);
        response.writeHead(file ? 200 : 404, file && { 'content-type': file.type }).end(file?.body);
    }
}
