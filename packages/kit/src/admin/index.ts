export { admin } from './module.ts';
export { adminErrors } from './errors.ts';
export { modelResource, type ModelResourceOptions } from './model-resource.ts';
export { adminDone, adminEach } from '../app/admin/each.ts';
export { AdminConditions, adminRows, type AdminOrder, type AdminRows, type AdminSelect } from '../app/admin/list.ts';
export type { AdminOptions, AdminRole, AdminRoles } from './options.ts';
export type { AdminAction, AdminContext, AdminDeclaration, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
export type {
  AdminActionShape,
  AdminCellKind,
  AdminChart,
  AdminChoice,
  AdminColumn,
  AdminField,
  AdminFieldChange,
  AdminFilter,
  AdminLink,
  AdminNotice,
  AdminOverview,
  AdminPage,
  AdminPreview,
  AdminRange,
  AdminRecord,
  AdminResourceShape,
  AdminResult,
  AdminRow,
  AdminSecret,
  AdminSection,
  AdminState,
  AdminTile,
  AdminTimelineEntry,
  AdminTone,
  AdminValue,
  AdminWords,
} from '../app/admin/shapes.ts';
export { ADMIN_ACTION_IDS_MAX, ADMIN_STYLE_NONCE, type AdminOverviewAnswer, type AdminSession } from './wire.ts';
