export type { DeclaredObjects, GrantBackend, GrantQuestion } from '../declare/grant-backend.ts';
export { rulesBackend } from './rules-backend.ts';
