export type { AuditEntry, AuditSink, Endpoint, Outcome } from './audit/audit-entry.ts';
export { formatEntry } from './audit/json-lines.ts';
export type { BindAddress } from './config/bind-address.ts';
export { loadServerConfig, type ServerConfig } from './config/config.ts';
export { StartRefusal, type Problem } from './config/problem.ts';
export type { Client } from './config/read-clients.ts';
export { createListener, type ListenerOptions, type RequestListener } from './http/listener.ts';
export type { FileSource, SectionDefinition } from './section/definition.ts';
export { ConfigServer, type ServerOptions } from './server.ts';
