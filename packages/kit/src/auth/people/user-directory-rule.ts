import { implementationOf, objectOf } from '../../options/read-options.ts';
import { aFunction, filledText, oneOf, required } from '../../options/value-rule.ts';
import type { UserSource } from './user-directory.ts';
import type { UserTable } from './user-table.ts';

const table = objectOf<UserTable>({
  name: required(filledText),
  id: required(filledText),
  username: required(filledText),
  email: required(filledText),
  isActive: required(filledText),
  isStaff: required(filledText),
  isSuperuser: required(filledText),
  idType: oneOf('uuid', 'text', 'bigint', 'integer'),
});

export const userDirectory = implementationOf<UserSource>('a user directory: { table }', {
  table: required(table),
  findById: aFunction,
  findByLogin: aFunction,
  exportUser: aFunction,
  removeUser: aFunction,
});
