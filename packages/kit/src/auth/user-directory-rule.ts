import { implementationOf, objectOf } from '../options/read-options.ts';
import { aFunction, filledText, oneOf, required } from '../options/value-rule.ts';
import type { UserDirectory } from './user-directory.ts';

const table = objectOf<UserDirectory['table']>({
  name: required(filledText),
  id: required(filledText),
  username: required(filledText),
  email: required(filledText),
  isActive: required(filledText),
  isStaff: required(filledText),
  isSuperuser: required(filledText),
  idType: oneOf('uuid', 'text', 'bigint', 'integer'),
});

export const userDirectory = implementationOf<UserDirectory>('a user directory: { table, findById, findByLogin }', {
  table: required(table),
  findById: required(aFunction),
  findByLogin: required(aFunction),
});
