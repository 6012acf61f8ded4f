import type { AdminAction, AdminResource } from '../../app/admin/declaration.ts';
import type { User } from '../../auth/people/principal.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { adminErrors } from '../../screens/errors.ts';
import type { AdminRole, AdminSettings } from '../options.ts';

const OPERATIONS = ['read', 'create', 'update', 'remove', 'export', 'import', 'share'] as const;

/** What a user can do with the records of a list. */
export type StaffOperation = (typeof OPERATIONS)[number] | AdminAction;

const RANK: Readonly<Record<AdminRole, number>> = { read_only: 0, operator: 1, administrator: 2 };
const WORDS: Readonly<Record<AdminRole, string>> = { read_only: 'read only', operator: 'operator', administrator: 'administrator' };

export async function roleOf({ roles }: AdminSettings, user: User): Promise<AdminRole> {
  if (roles === null || user.is_superuser) return 'administrator';
  const role: string = await roles.of(user);
  // A role that is not known must not be more than the least.
  return role in RANK ? (role as AdminRole) : 'read_only';
}

/** Lists and operations in `roles.needs` that do not exist: they would keep the usual role, which may be less. */
export function neededRoleFaults({ roles }: AdminSettings, resources: readonly AdminResource[]): Fault[] {
  return Object.entries(roles?.needs ?? {}).flatMap(([list, operations]) => {
    const resource = resources.find(({ name }) => name === list);
    if (resource === undefined)
      return [
        unknownName(
          `admin(): roles.needs has "${list}", which is not a list of the site.`,
          list,
          resources.map(({ name }) => name),
        ),
      ];
    const known = [...OPERATIONS, ...resource.actions.map(({ name }) => name)];
    return Object.keys(operations)
      .filter((operation) => !known.includes(operation))
      .map((operation) =>
        unknownName(`admin(): roles.needs["${list}"] has "${operation}", which is not one of its operations.`, operation, known),
      );
  });
}

function unknownName(message: string, given: string, known: readonly string[]): Fault {
  return { id: 'E011', message, hint: didYouMean(given, known).trim() || `Known: ${known.join(', ')}.` };
}

/** The role an operation needs: as the settings say, else by what it does. */
export function neededRole(settings: AdminSettings, resource: AdminResource, operation: StaffOperation): AdminRole {
  const called = typeof operation === 'string' ? operation : operation.name;
  return settings.roles?.needs?.[resource.name]?.[called] ?? usualRole(settings, resource, operation);
}

function usualRole(settings: AdminSettings, resource: AdminResource, operation: StaffOperation): AdminRole {
  if (operation === 'read') return 'read_only';
  // Reading, but of everything at once and out of the site.
  if (operation === 'export') return 'operator';
  // A view of the list, for others. It can be taken back.
  if (operation === 'share') return 'operator';
  if (operation === 'import') return neededRole(settings, resource, 'create');
  if (typeof operation === 'string') return 'administrator';
  if (operation.needs !== undefined) return neededRole(settings, resource, operation.needs);
  return operation.tone === 'neutral' ? 'operator' : 'administrator';
}

/** Why this role may not do it; null: it may. */
export function refusalOf(settings: AdminSettings, role: AdminRole, resource: AdminResource, operation: StaffOperation): string | null {
  const needed = neededRole(settings, resource, operation);
  if (RANK[role] >= RANK[needed]) return null;
  return `This needs the role ${WORDS[needed]}; yours is ${WORDS[role]}. Whoever assigns the roles of this site can change that.`;
}

export async function requireRole(settings: AdminSettings, user: User, resource: AdminResource, operation: StaffOperation): Promise<void> {
  const refused = refusalOf(settings, await roleOf(settings, user), resource, operation);
  if (refused !== null) throw adminErrors.role_required({ detail: refused });
}
