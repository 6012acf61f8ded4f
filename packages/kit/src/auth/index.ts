export type { AuditEntry, AuditSink } from './request/audit-sink.ts';
export { authenticate, challengesOf, invalidCredentials, type Authentication } from './request/authenticate.ts';
export type { Authenticator, AuthRequest } from './request/authenticator.ts';
export type { Group, GroupDirectory } from './people/group-directory.ts';
export type { Membership } from './people/membership.ts';
export type { Principal, User } from './people/principal.ts';
export type { Hindrance, MembershipSource, Standing, StandingQuestion, Standings } from './rights/standing.ts';
export type { UserDirectory, UserSource } from './people/user-directory.ts';
