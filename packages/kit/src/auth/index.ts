export type { AuditEntry, AuditSink } from './audit-sink.ts';
export { authenticate, challengesOf, invalidCredentials, type Authentication } from './authenticate.ts';
export type { Authenticator, AuthRequest } from './authenticator.ts';
export type { Group, GroupDirectory } from './group-directory.ts';
export type { Membership } from './membership.ts';
export type { Principal, User } from './principal.ts';
export type { Hindrance, MembershipSource, Standing, StandingQuestion, Standings } from './standing.ts';
export type { UserDirectory, UserSource } from './user-directory.ts';
