export type { DeclaredObjects, GrantBackend, GrantQuestion } from './grant-backend.ts';
export { rulesBackend } from './rules-backend.ts';
