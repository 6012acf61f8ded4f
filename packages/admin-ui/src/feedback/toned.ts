/** The component writes its colours into the element itself: a class cannot replace them. */
export const toned = () => ({
  root: { '--alert-bg': 'var(--tone-soft)', '--alert-color': 'var(--tone)', '--alert-bd': '1px solid transparent' },
});
