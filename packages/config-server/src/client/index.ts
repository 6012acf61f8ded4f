export { RemoteSource, type RefreshResult, type RemoteSourceOptions } from './remote-source.ts';
export { followGenerations, type FollowOptions } from './follow-generations.ts';
export { CLIENT_ERROR_CODES, RemoteSourceError, type RemoteErrorCode, type RemoteErrorKind } from './errors.ts';
export { DocumentMismatch } from './mismatch.ts';
export type { Document } from './document.ts';
export type { Generation } from './read-generations.ts';
export type { SectionOptions } from './options.ts';
export type { StandardSchema } from './standard-schema.ts';
export type { TlsOptions } from './tls.ts';
