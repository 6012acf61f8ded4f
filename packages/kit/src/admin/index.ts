export { admin } from './module.ts';
export { modelResource, screen } from '../screens/screen.ts';
export { chart, section, type ScreenOptions } from '../screens/screen-words.ts';
export { adminDone, adminEach } from '../app/admin/each.ts';
export type { AdminOptions, AdminRole, AdminRoles } from './options.ts';
export type { AdminAction, AdminContext, AdminDeclaration, AdminFile, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
export type { AdminOverview, AdminRecord } from '../app/admin/sections.ts';
export type { AdminColumn, AdminField, AdminFilter, AdminResult } from '../app/admin/shapes.ts';
