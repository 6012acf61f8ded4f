export {
  allowAny,
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
  safeMethods,
  type HasScopesOptions,
  type HasRuleOptions,
  type IsOwnerOptions,
} from './built-ins.ts';
export { all, any, includesKind, not, Permission, rulesOf } from './permission.ts';
export type { PermissionContext, PermissionDefinition, Rule, Verdict } from './permission.ts';
export { isConcreteScope, isScope, normaliseScopes, requiresScope, scopeCovers } from './scope.ts';
