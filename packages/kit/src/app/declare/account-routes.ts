import type { ControllerBase } from '../../http/compile/controller.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';

/** What is mounted in an app. */
export interface MountedParts {
  readonly routes: readonly CompiledRoute[];
  readonly controllers: readonly ControllerBase[];
}

/** Routes of a login that pages for people call, such as those of kit/contrib/pages. */
export interface AccountRoutes {
  /** How they are called. */
  readonly kind: 'accounts' | 'better-auth';
  /** What has to be mounted, for messages. */
  readonly needs: string;
  /** Where they are mounted: `/v1/account`; null where they are not. */
  base(app: MountedParts): string | null;
  /** People can make an account without an invitation. */
  readonly signUp: boolean;
  /** People who have forgotten their password get a link by mail. */
  readonly reset: boolean;
  /** Logins can ask for a one-time code. */
  readonly secondFactor: boolean;
}

/** Routes for tenants, their members and invitations, that such pages call. */
export interface TenantRoutes {
  /** How they are called. */
  readonly kind: 'tenants' | 'organizations';
  /** Where they are mounted: `/v1/tenants`; null where they are not. */
  base(app: MountedParts): string | null;
  /** Roles of members, the highest first: owners have it. */
  readonly roles: readonly string[];
  /** Roles that invite, change and remove members. */
  readonly managers: readonly string[];
  /** Whether an invited person without an account can make one by accepting. */
  readonly registration: boolean;
}

/** The path below which a controller of this class is mounted; `field` is one of its routes, whose own path is `path`. */
export function mountOf(
  { routes, controllers }: MountedParts,
  isOne: (controller: ControllerBase) => boolean,
  field: string,
  path: string,
): string | null {
  const names = new Set(controllers.filter(isOne).map((controller) => controller.constructor.name));
  const found = routes.find((route) => names.has(route.controller) && route.field === field && route.path.endsWith(path));
  return found === undefined ? null : found.path.slice(0, found.path.length - path.length);
}
