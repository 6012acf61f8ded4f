import { linkUrlFault, type MailMessage, type MailPort } from '../../app/declare/mail-port.ts';
import { type TenantPlace, tenantPlaces } from '../../app/tenants/tenant-places.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Fault } from '../../options/fault.ts';
import { implementationOf, InvalidOptions, type OptionRules, readOptions } from '../../options/read-options.ts';
import {
  aFunction,
  either,
  flag,
  guard,
  listOf,
  nullable,
  objectWith,
  required,
  rule,
  sentenceRule,
  wholeNumber,
} from '../../options/value-rule.ts';
import { denyAll } from '../../permissions/built-ins.ts';
import { Permission } from '../../permissions/permission.ts';
import type { RoleRules } from './declare/roles.ts';

/** A tenant as options see it. */
export interface TenantFacts {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
}

export interface TenantsOptions {
  /** Roles of members, the highest first: it is the owner's, whom every tenant has. Default: `['owner', 'admin', 'member']`. */
  readonly roles?: readonly string[];
  /** Roles that invite, change and remove members. Owners are changed by owners only. Default: the owner's role, and `admin` where there is one. */
  readonly managers?: readonly string[];
  /** Who may create tenants with TenantController, such as `isAuthenticated`. Default: nobody; programs call `createTenant()`. */
  readonly create?: Permission;
  /**
   * Where requests name their tenant, by slug or id: `{ header: 'X-Tenant' }`, `{ path: 'tenant' }` for routes below `/t/:tenant`,
   * `{ subdomainOf: 'example.com' }`, or a list of them. Default: the header `X-Tenant`.
   */
  readonly find?: TenantPlace | readonly TenantPlace[];
  /** Most members of a tenant: a number, or a function of the tenant, such as a lookup of its plan. Null: no limit. Default: null. */
  readonly seatsMax?: number | null | ((tenant: TenantFacts, db: Db) => number | null | Promise<number | null>);
  /** Most tenants that one user owns; one that is being deleted does not count until it is restored. Default: 20. */
  readonly ownedMax?: number;
  /** How long an invitation can be accepted. Default: 7 days. */
  readonly invitationLifetimeMs?: number;
  /** Most open invitations of a tenant. Default: 200. */
  readonly invitationsMax?: number;
  /** Lets any user accept an invitation, whatever their address is. Default: false. */
  readonly anyAddress?: boolean;
  /** How long a deleted tenant can be restored. Default: 30 days. */
  readonly graceMs?: number;
  /** How invitations are sent. Needs jobs(). Default: the response to the person who invites contains the token, once. */
  readonly mail?: InvitationMailOptions;
}

export interface InvitationMailOptions extends MailPort {
  /**
   * The page that accepts invitations: `https://shop.example.com/join`. The token is appended as `#tenant-invitation=…`: browsers do not send a fragment,
   * so that it is in no server's log.
   */
  readonly linkUrl: string;
  /** The text of a mail. Default: a few sentences in English. */
  compose?(mail: InvitationMail): Pick<MailMessage, 'subject' | 'text'>;
}

export interface InvitationMail {
  readonly tenant: TenantFacts;
  readonly email: string;
  readonly roles: readonly string[];
  /** With the token. */
  readonly link: string;
  readonly expiresAt: Date;
  /** The user name of the sender; null for programs and staff. */
  readonly invitedBy: string | null;
  /** The application's title. */
  readonly title: string;
}

export interface TenantSettings extends Required<Omit<TenantsOptions, 'roles' | 'managers' | 'find' | 'mail'>> {
  readonly roles: RoleRules;
  readonly find: readonly TenantPlace[];
  readonly mail: InvitationMailOptions | null;
}

const DAY_MS = 24 * 3_600_000;
const ROLES_MAX = 50;

const roleName = rule(
  'a role such as "admin": letters, digits, "_", "-" and ":"',
  (value) => typeof value === 'string' && /^[\w:-]{1,40}$/.test(value),
);

const rules: OptionRules<TenantsOptions> = {
  roles: listOf(roleName, { min: 1 }),
  managers: listOf(roleName),
  create: guard(rule('a permission, such as isAuthenticated', (value) => value instanceof Permission)),
  find: tenantPlaces,
  seatsMax: either('a number, null or a function of the tenant', nullable(wholeNumber(1)), aFunction),
  ownedMax: wholeNumber(1),
  invitationLifetimeMs: wholeNumber(60_000),
  invitationsMax: wholeNumber(1, 10_000),
  anyAddress: flag,
  graceMs: wholeNumber(0),
  mail: implementationOf<InvitationMailOptions>('mail: { ...smtpMail(…), linkUrl }', {
    send: required(aFunction),
    sent: objectWith('{ list, read }', 'list', 'read'),
    linkUrl: required(sentenceRule<unknown>(linkUrlFault)),
    compose: aFunction,
  }),
};

/** Complete and frozen; every fault is reported at once. */
export function readTenantsOptions(options: TenantsOptions): TenantSettings {
  const given = readOptions('tenants()', options, rules);
  const { find = { header: 'X-Tenant' } } = given;
  return Object.freeze({
    roles: roleRules(given),
    create: given.create ?? denyAll,
    find: Object.freeze([find].flat()),
    seatsMax: given.seatsMax ?? null,
    ownedMax: given.ownedMax ?? 20,
    invitationLifetimeMs: given.invitationLifetimeMs ?? 7 * DAY_MS,
    invitationsMax: given.invitationsMax ?? 200,
    anyAddress: given.anyAddress ?? false,
    graceMs: given.graceMs ?? 30 * DAY_MS,
    mail: given.mail ?? null,
  });
}

function roleRules({ roles = ['owner', 'admin', 'member'], managers }: TenantsOptions): RoleRules {
  const [owner = ''] = roles;
  const chosen = managers ?? [...new Set([owner, ...roles.filter((role) => role === 'admin')])];
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => faults.push({ id: 'E011', message: `tenants(): ${message}`, hint });
  if (new Set(roles).size !== roles.length) add('"roles" has a role twice.', 'Write each role once.');
  if (roles.length > ROLES_MAX) add(`"roles" has more than ${ROLES_MAX} roles.`, 'Use fewer roles.');
  const unknown = chosen.filter((role) => !roles.includes(role));
  if (unknown.length > 0) add(`"managers" has the unknown role "${unknown[0]}".`, `Roles: ${roles.join(', ')}.`);
  if (!chosen.includes(owner)) add('"managers" lacks the owner\'s role.', `Add "${owner}": owners manage their tenants.`);
  if (faults.length > 0) throw new InvalidOptions(faults);
  return Object.freeze({ all: Object.freeze([...roles]), owner, managers: Object.freeze([...chosen]) });
}
