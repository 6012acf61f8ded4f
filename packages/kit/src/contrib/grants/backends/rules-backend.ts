import { InvalidOptions } from '../../../options/read-options.ts';
import { isMembers } from '../../../options/value-rule.ts';
import { Permission } from '../../../permissions/permission.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { GrantBackend, GrantQuestion } from '../declare/grant-backend.ts';

/**
 * Decides by permissions of the app instead of stored grants: `rulesBackend({ view: hasRule('can_view'), change: isOwner() })`. A permission that
 * says which rows it holds for (`rows`) filters lists in SQL; one that does not gives no rows in lists. An action without one is refused.
 */
export function rulesBackend(permissions: Readonly<Record<string, Permission>>): GrantBackend {
  if (!isMembers(permissions) || Object.values(permissions).some((each) => !(each instanceof Permission)))
    throw new InvalidOptions([
      { id: 'E011', message: 'rulesBackend(): takes permissions by action, such as { view: hasRule("can_view") }.' },
    ]);
  const ruleOf = ({ permission }: GrantQuestion, action: string) =>
    Object.hasOwn(permissions, action) && permission !== undefined ? { rule: permissions[action] as Permission, permission } : undefined;
  return {
    name: 'rules',
    async condition(question, action) {
      const asked = ruleOf(question, action);
      return ((await asked?.rule.rows(asked.permission)) ?? false) as Where | boolean;
    },
    async decide(question, row, action) {
      const asked = ruleOf(question, action);
      return asked !== undefined && (await asked.rule.evaluate(asked.permission, row)) === true;
    },
  };
}
