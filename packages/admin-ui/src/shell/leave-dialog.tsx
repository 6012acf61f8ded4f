import { Button, Group, Text } from '@mantine/core';
import { useLeaveQuestion } from '../routing/leave-guard.ts';
import { Modal } from '../feedback/modal.tsx';

/** Asked when a form with unsaved changes is left. */
export function LeaveDialog() {
  const question = useLeaveQuestion();
  if (question === null) return null;
  return (
    <Modal opened onClose={question.stay} title="Discard the changes?" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Text size="sm" mb="md">
        This form has changes that are not saved. They are lost when you leave.
      </Text>
      <Group justify="flex-end" gap="sm">
        <Button variant="default" data-autofocus onClick={question.stay}>
          Stay on this page
        </Button>
        <Button color="danger" onClick={question.leave}>
          Discard
        </Button>
      </Group>
    </Modal>
  );
}
