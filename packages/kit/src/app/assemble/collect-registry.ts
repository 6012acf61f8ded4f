import type { Fault } from '../../options/fault.ts';
import type { App, Module } from '../declare/module.ts';
import {
  emptyRegistry,
  type GroupChangeListener,
  type MemberChangeListener,
  type ProvidedRegistry,
  type Registry,
  type UserChangeListener,
} from '../declare/registry.ts';

/** The login is a member of the module: routes are made of it before anything is provided. Standings and tenants are of the app's own directories. */
const { login: _login, standings: _standings, tenants: _tenants, ...providable } = emptyRegistry;

/** What the app itself puts on the registry. */
type OwnRegistry = Partial<Pick<Registry, 'login' | 'standings' | 'tenants' | 'userChanges'>>;

/** Collects what the modules provide. All may listen to changes of users, groups and members; everything else has one provider at most. */
export function collectRegistry(
  modules: readonly Module[],
  app: App,
  { userChanges: own = [], ...given }: OwnRegistry = {},
): { readonly registry: Registry; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  const providers = new Map<string, string>();
  const provided: ProvidedRegistry = {};
  const userChanges: UserChangeListener[] = [...own];
  const groupChanges: GroupChangeListener[] = [];
  const memberChanges: MemberChangeListener[] = [];
  for (const module of modules) {
    const { name } = module;
    const {
      userChanges: ofUsers = [],
      groupChanges: ofGroups = [],
      memberChanges: ofMembers = [],
      ...single
    } = module.provides?.(app) ?? {};
    for (const [slot, value] of Object.entries(single)) {
      const other = providers.get(slot);
      if (!(slot in providable)) {
        const known = Object.keys(providable).join(', ');
        faults.push({ id: 'E006', message: `The module "${name}" provides "${slot}", which is unknown.`, hint: `Known: ${known}.` });
      } else if (other !== undefined) {
        faults.push({ id: 'E006', message: `The modules "${other}" and "${name}" both provide ${slot}.`, hint: 'Install one of them.' });
      } else if (value !== null && value !== undefined) providers.set(slot, name);
    }
    Object.assign(provided, single);
    userChanges.push(...ofUsers);
    groupChanges.push(...ofGroups);
    memberChanges.push(...ofMembers);
  }
  return {
    registry: Object.freeze({
      ...emptyRegistry,
      ...provided,
      ...given,
      userChanges: Object.freeze(userChanges),
      groupChanges: Object.freeze(groupChanges),
      memberChanges: Object.freeze(memberChanges),
    }),
    faults,
  };
}
