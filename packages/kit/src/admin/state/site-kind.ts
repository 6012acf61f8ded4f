import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { App } from '../../app/declare/module.ts';
import { isStaff } from '../../permissions/built-ins.ts';
import { BESIDE_TENANTS } from '../../http/compile/tenant-header.ts';
import type { PortalFacts } from '../wire/wire.ts';
import { toolkitModules } from '../../app/data/toolkit-modules.ts';
import { backfillsResource } from '../model/backfills-resource.ts';
import { dataResource, saysAboutPeople } from '../model/data-resource.ts';

/** Whose site it is. The admin site shows what is there, to staff; the portal shows callers what the API shows them. */
export interface SiteKind {
  /** Marks its routes, and begins the names of their operations and of its audit entries. */
  readonly name: 'admin' | 'portal';
  readonly permission: typeof isStaff;
  readonly isForStaff: boolean;
  declarations(app: App): readonly AdminDeclaration[];
  /** How a portal looks. */
  readonly portal?: Omit<PortalFacts, 'by_link'>;
  /** Whether the caller came by a link, and so has no account here. */
  isByLink?(principal: Principal): boolean;
  /** Which lists the caller is shown, and whether they may be changed, besides the role. Default: all, and they may. */
  access?(context: AdminContext): Promise<SiteAccess>;
}

export interface SiteAccess {
  shows(resource: string): boolean;
  readonly manages: boolean;
}

export const READ_ONLY = 'You can look at everything here and change nothing.';

/** Why a caller who only looks may not do it; null: it only reads. */
export function readOnlyRefusal(access: SiteAccess | undefined, operation: unknown): string | null {
  return access === undefined || access.manages || operation === 'read' || operation === 'export' ? null : READ_ONLY;
}

export const adminKind: SiteKind = {
  name: 'admin',
  permission: isStaff,
  isForStaff: true,
  declarations: (app) => [
    ...ownFirst(app.modules).flatMap(({ admin }) => (admin === undefined ? [] : [admin])),
    ...(app.modules.some(({ backfills = [] }) => backfills.length > 0) ? [{ resources: [backfillsResource()] }] : []),
    ...(saysAboutPeople(app) ? [{ resources: [dataResource()] }] : []),
  ],
};

/** What an application is about stands before what every application has. Within each, in the order in which the modules were declared. */
function ownFirst(modules: App['modules']): App['modules'] {
  return modules.toSorted((a, b) => Number(toolkitModules.has(a.name)) - Number(toolkitModules.has(b.name)));
}

/** Facts of every route of the site. */
export function siteFacts({ name, permission, isForStaff }: SiteKind, auth: readonly string[]) {
  // Staff resume a tenant, also one that they work in themselves.
  return { permission, auth, hidden: true, metadata: { [name]: true, ...(isForStaff ? BESIDE_TENANTS : {}) } } as const;
}

/** The name of a class is part of the operation ids, and an app may have both sites. */
export function namedFor<C extends abstract new (...given: never[]) => object>({ name }: SiteKind, type: C): C {
  const site = name === 'admin' ? 'KitAdmin' : 'KitPortal';
  return Object.defineProperty(type, 'name', { value: type.name.replace(/^KitSite/, site) });
}
