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
