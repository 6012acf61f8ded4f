export { service, type Service, type ServiceType } from './service.ts';
export { fromContext, override, scoped, singleton, transient, value } from './registration.ts';
export type { Dependencies, Lifetime, Registration, Resolved } from './registration.ts';
export { Container, type Scope, type ServiceScope } from './container.ts';
