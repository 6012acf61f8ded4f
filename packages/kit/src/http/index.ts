export type { CompiledRoute, RaisedError, RouteSchema } from './exchange/compiled-route.ts';
export { Controller, type ControllerClass, type ControllerOptions, type Mountable } from './compile/controller.ts';
export { didYouMean, nearest } from '../options/did-you-mean.ts';
export { Exchange } from './exchange/exchange.ts';
export type { HandlerContext } from './declare/handler-context.ts';
export type { Host } from './exchange/host.ts';
export { jsonSchema } from './declare/json-schema.ts';
export type { Log } from './log.ts';
export type { Middleware, RequestPart } from './exchange/middleware.ts';
export { isRoute, route } from './declare/route.ts';
export type { Deprecation, HttpMethod, Route, RouteFacts, RouteOptions, StreamOptions } from './declare/route.ts';
export {
  isSchema,
  jsonSchemaOf,
  type JsonSchema,
  type OutputOf,
  type Schema,
  type SchemaIssue,
  type SchemaResult,
} from './declare/schema.ts';
export type { ServerSentEvent } from './declare/server-sent-event.ts';
export { TrustedProxies } from './exchange/trusted-proxies.ts';
export type { Fault } from '../options/fault.ts';
export { page, type Page } from './declare/page.ts';
export {
  filePart,
  multipart,
  type FilePart,
  type FilePartOptions,
  type MultipartFile,
  type MultipartParts,
  type MultipartSchema,
} from './input/multipart.ts';
export { raw, type RawBody, type RawBodyOptions, type RawBodySchema, type RawContent, type RawSchema } from './declare/raw.ts';
