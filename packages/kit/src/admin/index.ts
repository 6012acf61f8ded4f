export { admin } from './module.ts';
export { modelResource, type ModelResourceOptions } from './model/model-resource.ts';
export { adminDone, adminEach } from '../app/admin/each.ts';
export type { AdminOptions, AdminRole, AdminRoles } from './options.ts';
export type { AdminAction, AdminContext, AdminDeclaration, AdminFile, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
export type { AdminColumn, AdminField, AdminFilter, AdminOverview, AdminRecord, AdminResult } from '../app/admin/shapes.ts';
