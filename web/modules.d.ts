declare module '*/lib/server.mjs' {
  export class Server {
    static start(flags?: string[]): Promise<Server>;
    readonly url: URL;
    metrics(): Promise<Record<string, number>>;
    until(condition: (metrics: Record<string, number>) => boolean): Promise<Record<string, number>>;
    stop(): Promise<void>;
  }
}
declare module '*/lib/expect.mjs' {
  export function expectedNotes(args: object): string[];
}
declare module '*/lib/proxy.mjs' {
  export class Proxy {
    static start(target: URL, budget?: () => number | undefined): Promise<Proxy>;
    readonly url: URL;
    readonly cuts: number;
    destroyAll(): void;
    close(): Promise<void>;
  }
}
