export type { CompiledRoute, RaisedError, RouteSchema } from './compiled-route.ts';
export { Controller, type ControllerClass, type ControllerOptions, type Mountable } from './controller.ts';
export { didYouMean, nearest } from '../options/did-you-mean.ts';
export { Exchange } from './exchange.ts';
export type { HandlerContext } from './handler-context.ts';
export type { Host } from './host.ts';
export { jsonSchema } from './json-schema.ts';
export type { Log } from './log.ts';
export type { Middleware, RequestPart } from './middleware.ts';
export { isRoute, route } from './route.ts';
export type { Deprecation, HttpMethod, Route, RouteFacts, RouteOptions, StreamOptions } from './route.ts';
export { isSchema, jsonSchemaOf, type JsonSchema, type OutputOf, type Schema, type SchemaIssue, type SchemaResult } from './schema.ts';
export type { ServerSentEvent } from './server-sent-event.ts';
export { TrustedProxies } from './trusted-proxies.ts';
export type { Fault } from '../options/fault.ts';
export { page, type Page } from './page.ts';
export {
  filePart,
  multipart,
  type FilePart,
  type FilePartOptions,
  type MultipartFile,
  type MultipartParts,
  type MultipartSchema,
} from './multipart.ts';
export { raw, type RawBody, type RawBodyOptions, type RawBodySchema, type RawContent, type RawSchema } from './raw.ts';
