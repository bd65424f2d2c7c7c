export { perFrame } from './frames.js';
export { McpProvider, type McpProviderProps } from './provider.js';
export { useCall, useMcpClient, type McpClient } from './hooks.js';
