"""HorizontalPodAutoscalers: served in autoscaling/v2 and v1, stored as v2, as upstream."""
