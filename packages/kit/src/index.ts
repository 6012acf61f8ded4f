export { invalidCredentials } from './auth/index.ts';
export type {
  AuditEntry,
  AuditSink,
  Authenticator,
  AuthRequest,
  Group,
  GroupDirectory,
  Membership,
  Principal,
  User,
  UserDirectory,
  UserSource,
} from './auth/index.ts';
export { coreErrors, defineErrors, errors, isKitError, KitError } from './errors/index.ts';
export type { ErrorDefinition, ErrorFormat, ErrorMap, FieldError } from './errors/index.ts';
export {
  all,
  allowAny,
  any,
  denyAll,
  hasRecentLogin,
  hasRole,
  hasRule,
  hasScopes,
  isAuthenticated,
  isOwner,
  isReadOnly,
  isStaff,
  isSuperuser,
  not,
  Permission,
  requiresScope,
  scopeCovers,
} from './permissions/index.ts';
export type { PermissionContext, Rule } from './permissions/index.ts';
export { command, domainEvent, emit, type EmitRefused, on, query } from './events/index.ts';
export type { DomainEvent, EventContext, EventHandler, Operation, OperationContext } from './events/index.ts';
export { Controller, type Exchange, filePart, multipart, page, raw, route } from './http/index.ts';
export type {
  CompiledRoute,
  ControllerClass,
  Deprecation,
  HandlerContext,
  HttpMethod,
  Log,
  Middleware,
  MultipartFile,
  Page,
  Route,
  RouteOptions,
  Schema,
  ServerSentEvent,
  StreamOptions,
} from './http/index.ts';
export { appDatabase, createApp, definePlugin, migrateApp, moduleState, seed, type StartUpError } from './app/index.ts';
export type {
  App,
  AppOptions,
  Check,
  CheckFault,
  Command,
  CommandContext,
  EventPublisher,
  LoginProvider,
  Module,
  ModuleState,
  Registry,
  Seed,
  Settings,
} from './app/index.ts';
export type { Counter, Histogram, MetricRegistry } from './observe/index.ts';
