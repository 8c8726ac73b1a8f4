"""The reviews: TokenReview, SubjectAccessReview, SelfSubjectReview and related kinds."""
