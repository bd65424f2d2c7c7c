export { BelayClient } from './client.js';
export { MemoryStorage } from './storage.js';
export { CallError } from './types.js';
export type * from './types.js';
