// The one door to kit's side: what the admin API answers with, shared as types so that the halves cannot drift.
export type {
  AdminActionShape,
  AdminCellKind,
  AdminChart,
  AdminColumn,
  AdminField,
  AdminFilter,
  AdminLink,
  AdminOverview,
  AdminPage,
  AdminRange,
  AdminRecord,
  AdminResourceShape,
  AdminResult,
  AdminRow,
  AdminSecret,
  AdminSection,
  AdminState,
  AdminTile,
  AdminTone,
  AdminValue,
} from '../../../kit/src/app/admin/shapes.ts';
export type { AdminOverviewAnswer, AdminSession } from '../../../kit/src/admin/wire.ts';
export { ADMIN_ACTION_IDS_MAX } from '../../../kit/src/admin/wire.ts';
